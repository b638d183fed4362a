import BLE
import BLEHCITransport
import BLEVirtualController
import BluetoothHost
import BluetoothTypes
import Foundation

/// Adapters in real time, each on its own loop, with software controllers in one virtual air.
struct AdaptersOnAir {
    let air: AirOnQueue

    init(_ label: String, seed: UInt64) {
        air = AirOnQueue(label: label, seed: seed)
    }

    /// Opens an adapter.
    ///
    /// - Parameters:
    ///   - controller: changes the kind of the controller.
    ///   - configure: changes the adapter's configuration.
    func open(
        _ name: String,
        controller: @escaping @Sendable (inout VirtualController.Configuration) -> Void = { _ in },
        configure: (inout Adapter.Configuration) -> Void = { _ in }
    ) async throws -> Adapter {
        var configuration = Adapter.Configuration()
        configuration.deviceName = name
        configure(&configuration)
        let loop = DispatchEventLoop(label: name)
        let file = try configuration.capturePath.map {
            LoopConfined(try CaptureFile(path: $0), to: loop.queue.queue)
        }
        return try await Adapter.open(on: loop, configuration: configuration) { [air] in
            let (hostEnd, controllerEnd) = PipeTransport.makePair(loop.queue.queue, air.queue)
            air.queue.async { air.attach(controllerEnd) { _, configuration in controller(&configuration) } }
            return file.map { RecordingTransport(hostEnd, file: $0) } ?? hostEnd
        }
    }
}
