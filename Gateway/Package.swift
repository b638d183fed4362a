// swift-tools-version: 6.2
import Foundation
import PackageDescription

/// Warnings are errors if the environment requires it, as in CI.
let strict: [SwiftSetting] =
    ProcessInfo.processInfo.environment["SWIFT_BLE_STRICT"] == nil ? [] : [.treatAllWarnings(as: .error)]
let settings: [SwiftSetting] = strict + [.enableUpcomingFeature("ImmutableWeakCaptures")]

let nio = "swift-nio"

let package = Package(
    name: "swift-ble-gateway",
    products: [
        .executable(name: "ble-gateway", targets: ["Gateway"]),
        .library(name: "GatewayFleet", targets: ["GatewayFleet"]),
    ],
    dependencies: [
        .package(name: "swift-ble", path: ".."),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", .upToNextMinor(from: "1.6.0")),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // The messages of the ESPHome native API, generated from esphome.proto: `make generate-gateway`.
        .target(
            name: "ESPHomeMessages",
            dependencies: [.product(name: "SwiftProtobuf", package: "swift-protobuf")],
            exclude: ["esphome.proto"],
            swiftSettings: settings
        ),
        // Frames, encryption and sessions of the ESPHome native API, without I/O.
        .target(
            name: "ESPHomeProtocol",
            dependencies: [
                "ESPHomeMessages",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOCore", package: nio),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            swiftSettings: settings
        ),
        // Decodes lines of hexadecimal digits, for the comparison with other decoders: `Tests/Sensors/run`.
        .executableTarget(
            name: "sensor-decoder",
            dependencies: [
                .product(name: "BluetoothCodecs", package: "swift-ble"),
                .product(name: "BluetoothSensors", package: "swift-ble"),
            ],
            path: "Tests/Sensors/Decoder",
            swiftSettings: settings
        ),
        // The gateway: adapters, devices, clients and the server.
        .target(
            name: "GatewayCore",
            dependencies: [
                "ESPHomeMessages", "ESPHomeProtocol",
                .product(name: "BLE", package: "swift-ble"),
                .product(name: "BluetoothSensors", package: "swift-ble"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOCore", package: nio),
                .product(name: "NIOPosix", package: nio),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            swiftSettings: settings
        ),
        // The client of MQTT brokers: Debian's libmosquitto-dev.
        .systemLibrary(name: "CMosquitto", pkgConfig: "libmosquitto", providers: [.apt(["libmosquitto-dev"])]),
        // Publishes the readings of sensors to an MQTT broker.
        .target(
            name: "GatewayMQTT",
            dependencies: [
                "CMosquitto", "GatewayCore",
                .product(name: "BLE", package: "swift-ble"),
                .product(name: "BluetoothCodecs", package: "swift-ble"),
                .product(name: "BluetoothSensors", package: "swift-ble"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            swiftSettings: settings
        ),
        // Combines what many gateways received from the same tags, without I/O.
        .target(
            name: "GatewayFleet",
            dependencies: [.product(name: "DequeModule", package: "swift-collections")],
            swiftSettings: settings
        ),
        // Metrics and the status page over HTTP.
        .target(
            name: "GatewayWeb",
            dependencies: [
                "GatewayCore", "GatewayFleet", "ESPHomeProtocol",
                .product(name: "BLE", package: "swift-ble"),
                .product(name: "BluetoothSensors", package: "swift-ble"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: nio),
                .product(name: "NIOHTTP1", package: nio),
                .product(name: "NIOPosix", package: nio),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            // Bundles would not be found by a program that is linked statically.
            resources: [
                .embedInCode("Page/Resources/icon.svg"),
                .embedInCode("Page/Resources/index.html"),
                .embedInCode("Page/Resources/script.js"),
                .embedInCode("Page/Resources/style.css"),
            ],
            swiftSettings: settings
        ),
        // The program.
        .executableTarget(
            name: "Gateway",
            dependencies: [
                "GatewayCore", "GatewayFleet", "GatewayMQTT", "GatewayWeb", "ESPHomeProtocol",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "BLE", package: "swift-ble"),
                .product(name: "BluetoothSensors", package: "swift-ble"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: nio),
                .product(name: "NIOPosix", package: nio),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "GatewayTestSupport",
            dependencies: [
                "GatewayWeb",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: nio),
            ],
            path: "Tests/GatewayTestSupport",
            swiftSettings: settings
        ),
        .testTarget(
            name: "GatewayCommandTests",
            dependencies: [
                "GatewayTestSupport", "Gateway", "GatewayCore", "GatewayFleet", "GatewayMQTT", "GatewayWeb",
                .product(name: "BLE", package: "swift-ble"),
                .product(name: "BluetoothSensors", package: "swift-ble"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "GatewayMQTTTests",
            dependencies: [
                "GatewayTestSupport", "GatewayMQTT", "GatewayCore",
                .product(name: "BLE", package: "swift-ble"),
                .product(name: "BluetoothSensors", package: "swift-ble"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings
        ),
        .testTarget(name: "GatewayFleetTests", dependencies: ["GatewayFleet"], swiftSettings: settings),
        .testTarget(
            name: "GatewayWebTests",
            dependencies: [
                "GatewayTestSupport", "GatewayWeb", "GatewayCore", "GatewayFleet",
                .product(name: "BLE", package: "swift-ble"),
                .product(name: "BluetoothSensors", package: "swift-ble"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: nio),
                .product(name: "NIOEmbedded", package: nio),
                .product(name: "NIOHTTP1", package: nio),
                .product(name: "NIOPosix", package: nio),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "ESPHomeProtocolTests",
            dependencies: [
                "ESPHomeProtocol", "ESPHomeMessages",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOCore", package: nio),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "GatewayCoreTests",
            dependencies: [
                "GatewayTestSupport", "GatewayCore", "ESPHomeProtocol", "ESPHomeMessages",
                .product(name: "BLE", package: "swift-ble"),
                .product(name: "BluetoothSensors", package: "swift-ble"),
                .product(name: "NIOCore", package: nio),
                .product(name: "NIOEmbedded", package: nio),
                .product(name: "NIOPosix", package: nio),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            swiftSettings: settings
        ),
        // The fuzzing targets, and a test that runs inputs that once revealed a fault. `make fuzz TARGET=gateway`
        // builds the rest. The folder Program has links to sources of the program, which a target that is no test
        // cannot import.
        .target(
            name: "GatewayFuzzTargets",
            dependencies: [
                "GatewayTestSupport", "GatewayCore", "GatewayFleet", "GatewayMQTT", "GatewayWeb", "ESPHomeProtocol",
                "ESPHomeMessages",
                .product(name: "BLE", package: "swift-ble"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: nio),
                .product(name: "NIOEmbedded", package: nio),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            path: "Tests/Fuzz/Targets",
            swiftSettings: settings
        ),
        .testTarget(
            name: "GatewayFuzzTests",
            dependencies: ["GatewayFuzzTargets"],
            path: "Tests/Fuzz/Tests",
            swiftSettings: settings
        ),
    ]
)

// libFuzzer is available only with its sanitizer: `make fuzz` sets both.
if ProcessInfo.processInfo.environment["SWIFT_BLE_FUZZ"] != nil {
    package.targets.append(
        .executableTarget(
            name: "fuzz-gateway",
            dependencies: ["GatewayFuzzTargets", .product(name: "CFuzzer", package: "swift-ble")],
            path: "Tests/Fuzz/Driver",
            swiftSettings: settings
        )
    )
}
