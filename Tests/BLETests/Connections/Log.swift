import BLE
import BluetoothHost
import Synchronization

/// Collects values in the order in which they were added.
final class Log<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])

    var all: [Value] { values.withLock { $0 } }

    func append(_ value: Value) {
        values.withLock { $0.append(value) }
    }
}

extension Adapter {
    /// The current number of links.
    var links: Int {
        get async { await host.linkIdentifiers().count }
    }
}
