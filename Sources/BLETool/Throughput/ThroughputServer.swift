import BLE
import BLEATT
import BLEByteCoding
import BluetoothTypes
import Synchronization

/// Offers the ``ThroughputService`` until it is stopped.
struct ThroughputServer: Sendable {
    /// The number of notifications that are sent before other tasks of the same executor run. Calls for a lost link
    /// return at once, so without a limit the loop would block the executor.
    private static let batch = 64

    private let peripheral: Peripheral
    private let events: Events<PeripheralEvent>
    private let service: PublishedService
    private let counter: WriteCounter
    private let notifyLength: Int?

    /// Publishes the service.
    ///
    /// - Parameters:
    ///   - readLength: length of the value to read, in bytes.
    ///   - notifyLength: length of each notification, in bytes; nil for the maximum that a packet holds.
    init(on adapter: Adapter, readLength: Int, notifyLength: Int?) async throws {
        peripheral = adapter.peripheral
        self.notifyLength = notifyLength
        events = await adapter.peripheral.events()
        let counter = WriteCounter()
        self.counter = counter
        let published = try await adapter.peripheral.publish([
            ThroughputService.definition(length: readLength)
        ]) { _, access in
            guard case .read(_, let offset) = access else { throw ATTErrorCode.writeNotPermitted }
            let report = ThroughputReport(writes: UInt64(counter.value), usage: .current)
            let value = PacketBuffer.bytes { report.encode(into: &$0) }
            guard offset <= value.count else { throw ATTErrorCode.invalidOffset }
            return [UInt8](value[offset...])
        }
        service = published[0]
    }

    private func handle(of uuid: BluetoothUUID) -> AttributeHandle? {
        service.characteristics.first { $0.uuid == uuid }?.valueHandle
    }

    /// Serves clients until the task is cancelled or the adapter is closed.
    func run() async throws {
        let (sink, stream) = (handle(of: ThroughputService.sink), handle(of: ThroughputService.stream))
        try await withThrowingDiscardingTaskGroup { group in
            var subscribers: [ClientID: Flag] = [:]
            var mtus: [ClientID: Int] = [:]
            for await event in events {
                switch event {
                case .written(_, let handle, _, _, _) where handle == sink:
                    counter.increment()
                case .mtuChanged(let client, let mtu):
                    mtus[client] = mtu
                case .subscribed(let client, let handle, .notify) where handle == stream:
                    let isWanted = Flag()
                    subscribers.updateValue(isWanted, forKey: client)?.lower()
                    let value = ThroughputService.octets(
                        notifyLength ?? ThroughputService.greatestLength(mtu: mtus[client])
                    )
                    group.addTask { try await notify(value, of: handle, to: client, while: isWanted) }
                case .unsubscribed(let client, let handle, .notify) where handle == stream:
                    subscribers.removeValue(forKey: client)?.lower()
                case .disconnected(let client, _):
                    subscribers.removeValue(forKey: client)?.lower()
                    mtus[client] = nil
                default: break
                }
            }
            group.cancelAll()
            try Task.checkCancellation()
            throw BLEError.closed
        }
    }

    private func notify(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to client: ClientID,
        while isWanted: Flag
    ) async throws {
        while isWanted.isRaised, !Task.isCancelled {
            for _ in 0..<ThroughputServer.batch where isWanted.isRaised && !Task.isCancelled {
                try await peripheral.notify(value, of: handle, to: [client])
            }
            await Task.yield()
        }
    }
}

private final class WriteCounter: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .relaxed) }

    func increment() { count.add(1, ordering: .relaxed) }
}

/// Raised until somebody lowers it.
private final class Flag: Sendable {
    private let raised = Atomic(true)

    var isRaised: Bool { raised.load(ordering: .relaxed) }

    func lower() { raised.store(false, ordering: .relaxed) }
}
