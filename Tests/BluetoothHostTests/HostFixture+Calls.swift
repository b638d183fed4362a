import BLEHCI
import BluetoothTypes

@testable import BluetoothHost

extension HostFixture {
    /// Starts `body` in a cancellable task on the loop; the recorder gets its outcome.
    func startTask(_ body: @escaping @Sendable () async throws -> Void) -> (Task<Void, Never>, Recorder<HostError?>) {
        let outcome = Recorder<HostError?>()
        let task = Task(executorPreference: loop.taskExecutor) {
            do {
                try await body()
                outcome.append(nil)
            } catch {
                outcome.append(error as? HostError)
            }
        }
        loop.run(for: .milliseconds(1))
        return (task, outcome)
    }

    /// Makes the controller report new parameters of the first link.
    func completeParameterUpdate(interval: UInt16) {
        controller.emit {
            LEConnectionUpdateComplete(
                status: .success,
                connectionHandle: 0x0040,
                connectionInterval: interval,
                peripheralLatency: 0,
                supervisionTimeout: 400
            ).encodePacket(into: &$0)
        }
        loop.run(for: .milliseconds(1))
    }
}

extension ScriptedController {
    /// The event that reports an advertisement.
    static func report(
        of peer: DeviceAddress,
        _ type: LEAdvertisingReport.EventType = .connectableScannableUndirected,
        _ data: [UInt8] = [0x02, 0x01, 0x06],
        rssi: Int8 = -50
    ) -> [UInt8] {
        packet {
            LEAdvertisingReport.Report(eventType: type, address: PeerAddress(peer), data: data.rawSpan, rssi: rssi)
                .encodePacket(into: &$0)
        }
    }
}
