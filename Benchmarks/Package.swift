// swift-tools-version: 6.1
import Foundation
import PackageDescription

let package = Package(
    name: "swift-ble-benchmarks",
    products: [.executable(name: "bench-cases", targets: ["bench-cases"])],
    dependencies: [.package(name: "swift-ble", path: "..")],
    targets: [
        // The same minimal work on the same bytes, as it is typically written in C.
        .target(name: "CBaseline"),
        // Counts allocations of this process, and controls callgrind.
        .target(name: "CCounters"),
        .target(
            name: "Cases",
            dependencies: [
                "CBaseline", "CCounters",
                .product(name: "BluetoothCodecs", package: "swift-ble"),
                .product(name: "BLE", package: "swift-ble"),
                .product(name: "CoreBluetooth", package: "swift-ble"),
                .product(name: "BluetoothTesting", package: "swift-ble"),
            ]
        ),
        .executableTarget(name: "bench-cases", dependencies: ["Cases", "CCounters"], path: "Sources/BenchCases"),
    ]
)

// Only timing uses the public library; instructions and allocations are counted without it. Its plugin takes a minute
// to build.
if ProcessInfo.processInfo.environment["BENCHMARKS_WITH_LIBRARY"] != nil {
    package.dependencies.append(
        .package(url: "https://github.com/ordo-one/benchmark", .upToNextMinor(from: "1.38.1"), traits: [])
    )
    package.targets.append(
        .executableTarget(
            name: "Timing",
            dependencies: ["Cases", .product(name: "Benchmark", package: "benchmark")],
            path: "Benchmarks/Timing",
            plugins: [.plugin(name: "BenchmarkPlugin", package: "benchmark")]
        )
    )
}
