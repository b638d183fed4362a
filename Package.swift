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
            targets: ["BLEByteCoding", "BluetoothTypes", "BLEHCI", "BLEL2CAP", "BLEATT", "BLEGATT", "BLESMP"]
        ),
        .library(name: "BluetoothSensors", targets: ["BluetoothSensors"]),
        .library(name: "BluetoothTesting", targets: ["BluetoothTesting"]),
        .library(name: "CoreBluetooth", targets: ["CoreBluetooth"]),
        .executable(name: "ble", targets: ["BLETool"]),
        .executable(name: "hci-harness", targets: ["BLEHarness"]),
    ],
    dependencies: [collections, crypto, log, metrics, argumentParser],
    targets: [
        // Codec modules: no Foundation, no Dispatch, no I/O.
        .target(name: "BLEByteCoding", swiftSettings: codec),
        .target(name: "BluetoothTypes", dependencies: ["BLEByteCoding"], swiftSettings: codec),
        .target(
            name: "BLEHCI",
            dependencies: ["BLEByteCoding", "BluetoothTypes"],
            exclude: ["Tables"],
            swiftSettings: codec
        ),
        .target(name: "BLEL2CAP", dependencies: ["BLEByteCoding", "BluetoothTypes"], swiftSettings: codec),
        .target(name: "BLEATT", dependencies: ["BLEByteCoding", "BluetoothTypes"], swiftSettings: codec),
        .target(name: "BLEGATT", dependencies: ["BLEByteCoding", "BluetoothTypes", "BLEATT"], swiftSettings: codec),
        .target(name: "BLESMP", dependencies: ["BLEByteCoding", "BluetoothTypes"], swiftSettings: codec),
        .target(name: "BLECapture", dependencies: ["BLEByteCoding", "BluetoothTypes"], swiftSettings: codec),

        // Writes the generated files of HCI, Dissection and HCITests from the tables: `make generate`. No target needs
        // it.
        .executableTarget(name: "hci-generator", path: "Sources/HCIGenerator", swiftSettings: strict),

        // JSON values.
        .target(name: "BLEJSONText", swiftSettings: codec),

        // Descriptions of captured packets.
        .target(
            name: "BLEDissection",
            dependencies: [
                "BLEByteCoding", "BluetoothTypes", "BLEHCI", "BLEL2CAP", "BLEATT", "BLECapture", "BLEJSONText",
            ],
            swiftSettings: codec
        ),

        // The Security Manager's cryptographic functions.
        .target(
            name: "BLECryptography",
            dependencies: [
                "BLESMP",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
            ],
            swiftSettings: engine
        ),

        // Decoders of the advertisements of sensors, without I/O.
        .target(
            name: "BluetoothSensors",
            dependencies: ["BLEByteCoding", "BluetoothTypes", "BLECryptography"],
            swiftSettings: engine
        ),

        // Connections to controllers.
        .systemLibrary(name: "CBLEBluetooth", providers: [.apt(["libbluetooth-dev"])]),
        .target(
            name: "BLEHCITransport",
            dependencies: [
                "BLEByteCoding", "BluetoothTypes", "BLEHCI", "BLECapture", "CBLEBluetooth",
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: engine
        ),
        .target(
            name: "BLEVirtualController",
            dependencies: [
                "BLEByteCoding", "BluetoothTypes", "BLEHCI", "BLESMP", "BLECryptography",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: engine
        ),

        // State that outlives a process.
        .target(name: "BLEKeyStore", dependencies: ["BLEJSONText"], swiftSettings: engine),

        // The host.
        .target(
            name: "BluetoothHost",
            dependencies: [
                "BLEByteCoding", "BluetoothTypes", "BLEHCI", "BLEL2CAP", "BLEATT", "BLEGATT", "BLESMP",
                "BLECryptography", "BLEHCITransport",
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
        .target(
            name: "BLEProfiles",
            dependencies: ["BluetoothTypes", "BLEGATT", "BLEJSONText"],
            swiftSettings: engine
        ),

        // The APIs and the tool.
        .target(
            name: "BLE",
            dependencies: [
                "BluetoothHost", "BluetoothTypes", "BLEATT", "BLECryptography", "BLEGATT", "BLEHCI", "BLEHCITransport",
                "BLEKeyStore", "BLEL2CAP", "BLESMP",
                "BLEVirtualController",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: engine
        ),
        .target(
            name: "BluetoothTesting",
            dependencies: [
                "BLE", "BluetoothHost", "BluetoothTypes", "BLEByteCoding", "BLEATT", "BLEGATT", "BLEHCI", "BLEL2CAP",
                "BLESMP", "BLECapture",
                "BLEHCITransport", "BLEVirtualController",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: engine
        ),
        // The types of Core Bluetooth that only C can declare.
        .target(name: "CBLECoreBluetooth"),
        .target(
            name: "CoreBluetooth",
            dependencies: [
                "CBLECoreBluetooth", "BLE", "BluetoothHost", "BLEKeyStore", "BLEByteCoding", "BluetoothTypes", "BLEHCI",
                "BLEL2CAP", "BLEATT", "BLEGATT", "BLEHCITransport", "BLESMP",
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: engine
        ),
        .target(name: "BLEExamples", dependencies: ["CoreBluetooth"], swiftSettings: strict),
        .executableTarget(
            name: "BLETool",
            dependencies: [
                "BLE", "BluetoothHost", "BluetoothTesting", "CoreBluetooth", "BLEExamples", "BLEKeyStore",
                "BluetoothTypes",
                "BLEByteCoding", "BLEATT", "BLEGATT", "BLEL2CAP", "BLEHCI", "BLEHCITransport", "BLESMP", "BLECapture",
                "BLEDissection", "BLEProfiles", "BluetoothSensors",
                "BLEVirtualController",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: codec
        ),

        // Replaces a controller in tests of hosts; independent of the host.
        .executableTarget(
            name: "BLEHarness",
            dependencies: [
                "BLEByteCoding", "BLECapture", "CBLEBluetooth",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tests/Harness",
            exclude: ["Scripts"],
            swiftSettings: strict
        ),

        // A gateway whose memory and descriptors are watched for hours.
        .executableTarget(
            name: "endurance-host",
            dependencies: ["BLE", "BluetoothHost"],
            path: "Tests/Endurance",
            exclude: ["run", "controller.py"],
            swiftSettings: strict
        ),

        // Tests: each layer separately, then the whole.
        .testTarget(name: "BLEByteCodingTests", dependencies: ["BLEByteCoding"], swiftSettings: tests),
        .testTarget(
            name: "BluetoothTypesTests",
            dependencies: ["BluetoothTypes", "BLEByteCoding"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "BLEHCITests",
            dependencies: ["BLEHCI", "BLEByteCoding", "BluetoothTypes"],
            swiftSettings: tests
        ),
        .testTarget(name: "HCIGeneratorTests", dependencies: ["hci-generator"], swiftSettings: strict),
        .testTarget(
            name: "BLEL2CAPTests",
            dependencies: ["BLEL2CAP", "BLEByteCoding", "BluetoothTypes", "BLEVirtualController"],
            swiftSettings: tests
        ),
        // Finds the files of conformance exchanges and samples.
        .target(name: "ConformanceFolder", path: "Tests/Support/ConformanceFolder", swiftSettings: tests),
        .testTarget(
            name: "BLEATTTests",
            dependencies: ["BLEATT", "BLEByteCoding", "BluetoothTypes", "ConformanceFolder"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "BLEGATTTests",
            dependencies: [
                "BLEGATT", "BLEATT", "BLEByteCoding", "BluetoothTypes", "BLEVirtualController", "ConformanceFolder",
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "BLESMPTests",
            dependencies: [
                "BLESMP", "BLECryptography", "BLEByteCoding", "BluetoothTypes", "BLEVirtualController",
                "ConformanceFolder",
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "BLECryptographyTests",
            dependencies: ["BLECryptography", "BLESMP", "BluetoothTypes"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "BluetoothSensorsTests",
            dependencies: ["BluetoothSensors", "BLEByteCoding", "BluetoothTypes"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "BLECaptureTests",
            dependencies: ["BLECapture", "BLEByteCoding", "BLEVirtualController"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "BLEDissectionTests",
            dependencies: [
                "BLEDissection", "BLECapture", "BLEHCI", "BLEByteCoding", "BluetoothTypes", "BLEVirtualController",
            ],
            swiftSettings: tests
        ),
        // Makes system calls fail.
        .target(name: "CFaultInjection", path: "Tests/Support/CFaultInjection"),
        .target(
            name: "FaultInjection",
            dependencies: ["CFaultInjection"],
            path: "Tests/Support/FaultInjection",
            swiftSettings: tests
        ),
        .testTarget(
            name: "BLEHCITransportTests",
            dependencies: ["BLEHCITransport", "BLECapture", "BLEByteCoding", "BluetoothTypes", "FaultInjection"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "BLEVirtualControllerTests",
            dependencies: [
                "BLEVirtualController", "BLEHCI", "BLESMP", "BLECryptography", "BLEByteCoding", "BluetoothTypes",
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "BLEProfilesTests",
            dependencies: ["BLEProfiles", "BLEGATT", "BluetoothTypes"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "BLEKeyStoreTests",
            dependencies: ["BLEKeyStore", "BLEJSONText", "FaultInjection"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "BluetoothHostEnginesTests",
            dependencies: [
                "BluetoothHost", "BLEHCI", "BLEL2CAP", "BLEATT", "BLEGATT", "BLESMP", "BLECryptography",
                "BLEByteCoding", "BluetoothTypes",
                "BLEVirtualController",
                .product(name: "OrderedCollections", package: "swift-collections"),
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "BluetoothHostTests",
            dependencies: [
                "BluetoothHost", "BluetoothTesting", "BLE", "BLEHCITransport", "BLEHCI", "BLEL2CAP", "BLEATT",
                "BLEGATT", "BLESMP",
                "BLECryptography", "BLEByteCoding", "BluetoothTypes", "BLEVirtualController",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: tests
        ),
        // Changes bonds until it is killed.
        .executableTarget(
            name: "BondWriter",
            dependencies: ["BLE", "BluetoothHost", "BluetoothTypes", "BLEKeyStore", "BLESMP"],
            path: "Tests/Support/BondWriter",
            swiftSettings: strict
        ),
        .testTarget(
            name: "BLETests",
            dependencies: [
                "BLE", "BluetoothHost", "BluetoothTesting", "BondWriter", "FaultInjection", "BLEATT", "BluetoothTypes",
                "BLEGATT", "BLEHCITransport", "BLEKeyStore", "BLEL2CAP", "BLESMP", "BLEVirtualController",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
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
                "BluetoothTesting", "BLE", "BluetoothHost", "BLEGATT", "BLEHCI", "BLEHCITransport", "BLESMP",
                "BLECryptography", "BLEVirtualController",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "CoreBluetoothTests",
            dependencies: [
                "CoreBluetooth", "BluetoothTesting", "BLE", "BluetoothHost", "BLEKeyStore", "BLEHCITransport", "BLEHCI",
                "BLEGATT",
                "BLEATT", "BluetoothTypes", "BLEByteCoding", "BLECapture", "BLEL2CAP", "BLESMP", "BLEVirtualController",
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
                "BLEByteCoding", "BluetoothTypes", "BLEHCI", "BLEHCITransport", "BLEL2CAP", "BLEATT", "BLEGATT",
                "BLESMP", "BLECryptography",
                "BluetoothHost", "BLE", "BLEKeyStore", "BLEJSONText", "CoreBluetooth", "BluetoothTesting", "BLECapture",
                "BLEDissection", "BLEProfiles", "BluetoothSensors", "BLEVirtualController",
            ],
            path: "Tests/Fuzz/Targets",
            swiftSettings: tests
        ),
        .testTarget(
            name: "FuzzTests",
            dependencies: ["FuzzTargets", "BLEByteCoding", "BLECapture", "BLEVirtualController"],
            path: "Tests/Fuzz/Tests",
            swiftSettings: tests
        ),
        // The runs that fixtures are captures of, for their replays, and a program that performs a run with a
        // controller.
        .target(
            name: "RecordedRuns",
            dependencies: ["BLEATT", "BLE"],
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
                "BLE", "BluetoothTesting", "RecordedRuns", "BLECapture", "BLEHCI", "BLEHCITransport", "BLEL2CAP",
                "BLEATT", "BLESMP",
                "BLEByteCoding",
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "BLEExamplesTests",
            dependencies: [
                "BLEExamples", "CoreBluetooth", "BLE", "BluetoothHost", "BluetoothTypes", "BLEByteCoding", "BLEATT",
                "BLEGATT",
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "BLEToolTests",
            dependencies: [
                "BLETool", "BLE", "BluetoothHost", "BluetoothTesting", "BLEByteCoding", "BLECapture", "BLEExamples",
                "BLEKeyStore",
                "BLESMP", "BluetoothTypes", "BluetoothSensors", "BLEATT", "BLEGATT", "BLEHCITransport", "BLEProfiles",
                "BLEVirtualController",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict
        ),
        .testTarget(name: "HarnessTests", dependencies: ["BLEHarness", "BLETool"], swiftSettings: strict),
    ]
)

// libFuzzer is available only with its sanitizer: `make fuzz` sets both.
if ProcessInfo.processInfo.environment["SWIFT_BLE_FUZZ"] != nil {
    // The targets of the gateway, which is a package of its own, use it as well.
    package.products.append(.library(name: "CFuzzer", targets: ["CFuzzer"]))
    package.targets += [
        .target(name: "CFuzzer", path: "Tests/Fuzz/CFuzzer"),
        .executableTarget(
            name: "fuzz",
            dependencies: [
                "CFuzzer", "FuzzTargets", "BLEByteCoding", "BLEHCI", "BLEHCITransport", "BLEL2CAP", "BLECapture",
                "CoreBluetooth",
            ],
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
