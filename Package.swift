// swift-tools-version: 6.2
import Foundation
import PackageDescription

/// Warnings are errors if the environment requires it, as in CI. Otherwise, new warnings of a newer compiler break no
/// build.
let strict: [SwiftSetting] =
    ProcessInfo.processInfo.environment["SWIFT_BLE_STRICT"] == nil ? [] : [.treatAllWarnings(as: .error)]

/// Settings of codec modules: borrowed bytes, and every unsafe step is marked.
let codec: [SwiftSetting] = strict + [.enableExperimentalFeature("Lifetimes"), .strictMemorySafety()]
/// Settings of the other modules.
let engine: [SwiftSetting] = codec + [.enableUpcomingFeature("ImmutableWeakCaptures")]
let tests: [SwiftSetting] =
    strict + [.enableExperimentalFeature("Lifetimes"), .enableUpcomingFeature("ImmutableWeakCaptures")]

let collections = Package.Dependency.package(
    url: "https://github.com/apple/swift-collections",
    .upToNextMinor(from: "1.6.0")
)
let crypto = Package.Dependency.package(url: "https://github.com/apple/swift-crypto", from: "4.5.2")
let log = Package.Dependency.package(url: "https://github.com/apple/swift-log", from: "1.16.2")
let metrics = Package.Dependency.package(url: "https://github.com/apple/swift-metrics", from: "2.13.0")
let argumentParser = Package.Dependency.package(
    url: "https://github.com/apple/swift-argument-parser",
    from: "1.8.2"
)

let package = Package(
    name: "swift-ble",
    products: [
        .library(name: "BLE", targets: ["BLE"]),
        .library(
            name: "BluetoothCodecs",
            targets: ["ByteCoding", "BluetoothTypes", "HCI", "L2CAP", "ATT", "GATT", "SMP"]
        ),
        .library(name: "BluetoothTesting", targets: ["BluetoothTesting"]),
        .library(name: "CoreBluetooth", targets: ["CoreBluetooth"]),
        .executable(name: "ble", targets: ["BLETool"]),
        .executable(name: "hci-harness", targets: ["Harness"]),
    ],
    dependencies: [collections, crypto, log, metrics, argumentParser],
    targets: [
        // Codec modules: no Foundation, no Dispatch, no I/O.
        .target(name: "ByteCoding", swiftSettings: codec),
        .target(name: "BluetoothTypes", dependencies: ["ByteCoding"], swiftSettings: codec),
        .target(
            name: "HCI",
            dependencies: ["ByteCoding", "BluetoothTypes"],
            exclude: ["Tables"],
            swiftSettings: codec
        ),
        .target(name: "L2CAP", dependencies: ["ByteCoding", "BluetoothTypes"], swiftSettings: codec),
        .target(name: "ATT", dependencies: ["ByteCoding", "BluetoothTypes"], swiftSettings: codec),
        .target(name: "GATT", dependencies: ["ByteCoding", "BluetoothTypes", "ATT"], swiftSettings: codec),
        .target(name: "SMP", dependencies: ["ByteCoding", "BluetoothTypes"], swiftSettings: codec),
        .target(name: "Capture", dependencies: ["ByteCoding", "BluetoothTypes"], swiftSettings: codec),

        // Writes the generated files of HCI, Dissection and HCITests from the tables: `make generate`. No target needs it.
        .executableTarget(name: "hci-generator", path: "Sources/HCIGenerator", swiftSettings: strict),

        // JSON values.
        .target(name: "JSONText", swiftSettings: codec),

        // Descriptions of captured packets.
        .target(
            name: "Dissection",
            dependencies: ["ByteCoding", "BluetoothTypes", "HCI", "L2CAP", "ATT", "Capture", "JSONText"],
            swiftSettings: codec
        ),

        // The Security Manager's cryptographic functions.
        .target(
            name: "Cryptography",
            dependencies: [
                "SMP",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
            ],
            swiftSettings: engine
        ),

        // Connections to controllers.
        .systemLibrary(name: "CBluetooth", providers: [.apt(["libbluetooth-dev"])]),
        .target(
            name: "HCITransport",
            dependencies: [
                "ByteCoding", "BluetoothTypes", "HCI", "Capture", "CBluetooth",
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: engine
        ),
        .target(
            name: "VirtualController",
            dependencies: [
                "ByteCoding", "BluetoothTypes", "HCI", "SMP", "Cryptography",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: engine
        ),

        // State that outlives a process.
        .target(name: "KeyStore", dependencies: ["JSONText"], swiftSettings: engine),

        // The host.
        .target(
            name: "BluetoothHost",
            dependencies: [
                "ByteCoding", "BluetoothTypes", "HCI", "L2CAP", "ATT", "GATT", "SMP", "Cryptography", "HCITransport",
                .product(name: "BasicContainers", package: "swift-collections"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "OrderedCollections", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
            ],
            swiftSettings: engine
        ),

        // Files that define what a device advertises and serves.
        .target(name: "Profiles", dependencies: ["BluetoothTypes", "GATT", "JSONText"], swiftSettings: engine),

        // The APIs and the tool.
        .target(
            name: "BLE",
            dependencies: [
                "BluetoothHost", "BluetoothTypes", "ATT", "GATT", "HCI", "HCITransport", "KeyStore", "L2CAP", "SMP",
                "VirtualController",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: engine
        ),
        .target(
            name: "BluetoothTesting",
            dependencies: [
                "BLE", "BluetoothHost", "BluetoothTypes", "ByteCoding", "ATT", "GATT", "HCI", "L2CAP", "SMP", "Capture",
                "HCITransport", "VirtualController",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: engine
        ),
        // The types of Core Bluetooth that only C can declare.
        .target(name: "CCoreBluetooth"),
        .target(
            name: "CoreBluetooth",
            dependencies: [
                "CCoreBluetooth", "BLE", "BluetoothHost", "KeyStore", "ByteCoding", "BluetoothTypes", "HCI", "L2CAP",
                "ATT", "GATT", "HCITransport", "SMP",
            ],
            swiftSettings: engine
        ),
        .target(name: "Examples", dependencies: ["CoreBluetooth"], swiftSettings: strict),
        .executableTarget(
            name: "BLETool",
            dependencies: [
                "BLE", "BluetoothHost", "BluetoothTesting", "CoreBluetooth", "Examples", "KeyStore", "BluetoothTypes",
                "ByteCoding", "ATT", "GATT", "L2CAP", "HCI", "HCITransport", "SMP", "Capture", "Dissection", "Profiles",
                "VirtualController",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: codec
        ),

        // Replaces a controller in tests of hosts; independent of the host.
        .executableTarget(
            name: "Harness",
            dependencies: [
                "ByteCoding", "Capture", "CBluetooth",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tests/Harness",
            exclude: ["Scripts"],
            swiftSettings: strict
        ),

        // Tests: each layer separately, then the whole.
        .testTarget(name: "ByteCodingTests", dependencies: ["ByteCoding"], swiftSettings: tests),
        .testTarget(
            name: "BluetoothTypesTests",
            dependencies: ["BluetoothTypes", "ByteCoding"],
            swiftSettings: tests
        ),
        .testTarget(name: "HCITests", dependencies: ["HCI", "ByteCoding", "BluetoothTypes"], swiftSettings: tests),
        .testTarget(name: "HCIGeneratorTests", dependencies: ["hci-generator"], swiftSettings: strict),
        .testTarget(
            name: "L2CAPTests",
            dependencies: ["L2CAP", "ByteCoding", "BluetoothTypes", "VirtualController"],
            swiftSettings: tests
        ),
        .testTarget(name: "ATTTests", dependencies: ["ATT", "ByteCoding", "BluetoothTypes"], swiftSettings: tests),
        .testTarget(
            name: "GATTTests",
            dependencies: ["GATT", "ATT", "ByteCoding", "BluetoothTypes", "VirtualController"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "SMPTests",
            dependencies: ["SMP", "Cryptography", "ByteCoding", "BluetoothTypes", "VirtualController"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "CryptographyTests",
            dependencies: ["Cryptography", "SMP", "BluetoothTypes"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "CaptureTests",
            dependencies: ["Capture", "ByteCoding", "VirtualController"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "DissectionTests",
            dependencies: ["Dissection", "Capture", "HCI", "ByteCoding", "BluetoothTypes", "VirtualController"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "HCITransportTests",
            dependencies: ["HCITransport", "Capture", "ByteCoding", "BluetoothTypes"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "VirtualControllerTests",
            dependencies: ["VirtualController", "HCI", "SMP", "Cryptography", "ByteCoding", "BluetoothTypes"],
            swiftSettings: tests
        ),
        .testTarget(name: "ProfilesTests", dependencies: ["Profiles", "BluetoothTypes"], swiftSettings: tests),
        .testTarget(name: "KeyStoreTests", dependencies: ["KeyStore", "JSONText"], swiftSettings: tests),
        .testTarget(
            name: "BluetoothHostEnginesTests",
            dependencies: [
                "BluetoothHost", "HCI", "L2CAP", "ATT", "GATT", "SMP", "Cryptography", "ByteCoding", "BluetoothTypes",
                "VirtualController",
                .product(name: "OrderedCollections", package: "swift-collections"),
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "BluetoothHostTests",
            dependencies: [
                "BluetoothHost", "BluetoothTesting", "BLE", "HCITransport", "HCI", "L2CAP", "ATT", "GATT", "SMP",
                "Cryptography", "ByteCoding", "BluetoothTypes", "VirtualController",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: tests
        ),
        // Changes bonds until it is killed.
        .executableTarget(
            name: "BondWriter",
            dependencies: ["BLE", "BluetoothHost", "BluetoothTypes", "KeyStore", "SMP"],
            path: "Tests/Support/BondWriter",
            swiftSettings: strict
        ),
        .testTarget(
            name: "BLETests",
            dependencies: [
                "BLE", "BluetoothHost", "BluetoothTesting", "BondWriter", "ATT", "BluetoothTypes", "GATT",
                "HCITransport", "KeyStore", "L2CAP", "SMP", "VirtualController",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: tests
        ),
        // A program that imports only `BLE`, as an app does.
        .testTarget(
            name: "BLEImportTests",
            dependencies: ["BLE"],
            swiftSettings: strict + [.enableUpcomingFeature("MemberImportVisibility")]
        ),
        .testTarget(
            name: "BluetoothTestingTests",
            dependencies: ["BluetoothTesting", "BLE"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "SimulationTests",
            dependencies: [
                "BluetoothTesting", "BLE", "BluetoothHost", "HCI", "HCITransport", "SMP", "Cryptography",
                "VirtualController",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "CoreBluetoothTests",
            dependencies: [
                "CoreBluetooth", "BluetoothTesting", "BLE", "BluetoothHost", "KeyStore", "HCITransport", "HCI", "GATT",
                "ATT", "BluetoothTypes", "ByteCoding", "Capture", "L2CAP", "SMP", "VirtualController",
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
            ],
            swiftSettings: tests
        ),
        // The same source of apps, compiled as Swift 5.
        .testTarget(
            name: "CoreBluetoothSwift5Tests",
            dependencies: ["CoreBluetooth"],
            swiftSettings: strict + [.swiftLanguageMode(.v5)]
        ),
        // The fuzzing targets, and a test that runs inputs that once revealed a fault. `make fuzz` builds the rest.
        .target(
            name: "FuzzTargets",
            dependencies: [
                "ByteCoding", "BluetoothTypes", "HCI", "HCITransport", "L2CAP", "ATT", "GATT", "SMP", "Cryptography",
                "BluetoothHost", "BLE", "BluetoothTesting", "Capture", "Dissection", "Profiles", "VirtualController",
            ],
            path: "Tests/Fuzz/Targets",
            swiftSettings: tests
        ),
        .testTarget(
            name: "FuzzTests",
            dependencies: ["FuzzTargets", "ByteCoding", "Capture", "VirtualController"],
            path: "Tests/Fuzz/Tests",
            swiftSettings: tests
        ),
        // The runs that fixtures are captures of, for their replays, and a program that performs a run with a
        // controller.
        .target(
            name: "RecordedRuns",
            dependencies: ["ATT", "BLE"],
            path: "Tests/Support/RecordedRuns",
            swiftSettings: tests
        ),
        .executableTarget(
            name: "fixture-recorder",
            dependencies: ["BLE", "RecordedRuns"],
            path: "Tests/Support/FixtureRecorder",
            swiftSettings: strict
        ),
        .testTarget(
            name: "ReplayTests",
            dependencies: [
                "BLE", "BluetoothTesting", "RecordedRuns", "Capture", "HCI", "HCITransport", "L2CAP", "ATT", "SMP",
                "ByteCoding",
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "ExamplesTests",
            dependencies: [
                "Examples", "CoreBluetooth", "BLE", "BluetoothHost", "BluetoothTypes", "ByteCoding", "ATT", "GATT",
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "BLEToolTests",
            dependencies: [
                "BLETool", "BLE", "BluetoothHost", "BluetoothTesting", "ByteCoding", "Capture", "Examples", "KeyStore",
                "SMP", "BluetoothTypes", "ATT", "GATT", "HCITransport", "Profiles", "VirtualController",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict
        ),
        .testTarget(name: "HarnessTests", dependencies: ["Harness", "BLETool"], swiftSettings: strict),
    ]
)

// libFuzzer is available only with its sanitizer: `make fuzz` sets both.
if ProcessInfo.processInfo.environment["SWIFT_BLE_FUZZ"] != nil {
    package.targets += [
        .target(name: "CFuzzer", path: "Tests/Fuzz/CFuzzer"),
        .executableTarget(
            name: "fuzz",
            dependencies: ["CFuzzer", "FuzzTargets", "ByteCoding", "HCI", "HCITransport", "L2CAP", "Capture"],
            path: "Tests/Fuzz/Driver",
            swiftSettings: tests
        ),
    ]
}

// The plugin of `make docs`, which sets the first variable. The Swift Package Index sets the second one. Packages that
// depend on this one never fetch the plugin. But each build of this package would compile it.
let environment = ProcessInfo.processInfo.environment
if environment["SWIFT_BLE_DOCS"] != nil || environment["SPI_BUILDER"] != nil {
    package.dependencies.append(.package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0"))
}
