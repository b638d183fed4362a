import BLE
import BLEProfiles
import BluetoothSensors
import BluetoothTypes
import Synchronization

/// Prints and counts the values that a peer sends.
final class DeliveryPrinter: Sendable {
    private struct State {
        var clock = WallClock()
        var count = 0
    }

    private let characteristic: BluetoothUUID
    private let format: PresentationFormat?
    private let asJSON: Bool
    private let output: @Sendable (String) throws -> Void
    private let state = Mutex(State())

    /// - Parameter output: prints a line.
    init(
        characteristic: BluetoothUUID,
        format: PresentationFormat?,
        asJSON: Bool,
        output: @escaping @Sendable (String) throws -> Void = { try Output.standard.line($0) }
    ) {
        self.characteristic = characteristic
        self.format = format
        self.asJSON = asJSON
        self.output = output
    }

    /// The number of values that were printed. Dropped values do not count.
    var count: Int { state.withLock { $0.count } }

    /// Prints a value, after the number of those that were dropped before it. Returns the number of values so far.
    func print(_ received: HandleValue) throws -> Int {
        if received.droppedBefore > 0 {
            let dropped = DroppedLine(count: received.droppedBefore, kind: .value)
            try output(asJSON ? dropped.json.description : dropped.text)
        }
        let (time, count) = state.withLock { state in
            state.count += 1
            return (state.clock.microseconds(at: received.time, now: microsecondsSinceEpoch()), state.count)
        }
        let delivery = Delivery(
            characteristic: characteristic,
            handle: received.handle,
            value: received.value,
            format: format,
            isIndication: received.isIndication,
            time: time
        )
        try output(asJSON ? delivery.json.description : delivery.line)
        return count
    }
}
