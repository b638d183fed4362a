// swift-tools-version: 6.2
import PackageDescription

/// What `measure` runs: a host as a server or as a client, the least that a gateway is, a controller without a
/// radio, and what the machine itself allows.
let package = Package(
    name: "descriptor-benchmarks",
    dependencies: [.package(name: "swift-ble", path: "../..")],
    targets: [
        .executableTarget(
            name: "measured-host",
            dependencies: [.product(name: "BLE", package: "swift-ble")],
            path: "MeasuredHost"
        ),
        .executableTarget(
            name: "minimal-gateway",
            dependencies: [.product(name: "BLE", package: "swift-ble")],
            path: "MinimalGateway"
        ),
        .executableTarget(name: "null-controller", path: "NullController"),
        .executableTarget(name: "floor", path: "Floor"),
    ]
)
