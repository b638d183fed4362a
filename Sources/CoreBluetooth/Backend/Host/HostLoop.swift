import BLEHCITransport
import BluetoothHost
import Synchronization

/// The loop of the host that a backend uses. It is known when the host is open.
final class HostLoop: Sendable {
    private let loop = Mutex<(any EventLoop)?>(nil)

    func set(_ loop: any EventLoop) {
        self.loop.withLock { $0 = loop }
    }

    /// Stops the program if the caller is not on the loop.
    func check() {
        loop.withLock { $0 }?.checkIsolated()
    }
}

extension LoopConfined {
    /// Confines a value to the loop of a host.
    init(_ value: Value, to loop: any EventLoop) {
        self.init(value) { loop.checkIsolated() }
    }

    /// Confines a value to the loop of a host that is not open yet.
    init(_ value: Value, to loop: HostLoop) {
        self.init(value) { loop.check() }
    }
}
