// swift-tools-version: 6.2
import PackageDescription

/// Codec rooms: borrowed bytes, typed errors, every unsafe step marked.
let codec: [SwiftSetting] = [.enableExperimentalFeature("Lifetimes"), .strictMemorySafety()]

let package = Package(
    name: "swift-ble",
    targets: [
        .target(name: "ByteCoding", swiftSettings: codec),
        .target(name: "BluetoothTypes", dependencies: ["ByteCoding"], swiftSettings: codec),
        .target(name: "L2CAP", dependencies: ["ByteCoding", "BluetoothTypes"], swiftSettings: codec),
        .target(name: "HCI", dependencies: ["ByteCoding", "BluetoothTypes"], swiftSettings: codec),
    ]
)
