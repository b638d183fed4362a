// swift-tools-version: 6.2
import PackageDescription

/// The programs that `measure` runs: a host as a server or as a client, a minimal gateway, controllers without a
/// radio, a host in C, and baselines of the machine. `Benchmarks/BlueZ/measure` runs the counting app on the kernel
/// controller.
let package = Package(
    name: "descriptor-benchmarks",
    dependencies: [.package(name: "swift-ble", path: "../..")],
    targets: [
        .executableTarget(
            name: "measured-host",
            dependencies: ["ProgramSupport", .product(name: "BLE", package: "swift-ble")],
            path: "MeasuredHost"
        ),
        .executableTarget(
            name: "minimal-gateway",
            dependencies: ["ProgramSupport", .product(name: "BLE", package: "swift-ble")],
            path: "MinimalGateway"
        ),
        .executableTarget(
            name: "counting-app",
            dependencies: ["ProgramSupport", .product(name: "BLE", package: "swift-ble")],
            path: "CountingApp"
        ),
        .target(name: "ProgramSupport", path: "ProgramSupport"),
        .target(name: "CSupport", path: "CSupport"),
        .executableTarget(name: "kernel-controller", dependencies: ["CSupport"], path: "KernelController"),
        .executableTarget(name: "null-controller", dependencies: ["CSupport"], path: "NullController"),
        .executableTarget(name: "c-host", dependencies: ["CSupport"], path: "CHost"),
        .executableTarget(name: "floor", dependencies: ["CSupport"], path: "Floor"),
    ]
)
