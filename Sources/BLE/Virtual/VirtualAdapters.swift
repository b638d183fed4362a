import BLEHCITransport
import BluetoothHost
import Dispatch
import Synchronization

/// Controllers in this process, by the name of the air that they share.
enum VirtualAdapters {
    private static let airs = Mutex<[String: AirOnQueue]>([:])

    /// Makes controllers for a host on a loop.
    static func opener(on loop: DispatchEventLoop) -> @Sendable (_ name: String) -> any Transport {
        { name in
            let air = airs.withLock { airs in
                let air = airs[name] ?? AirOnQueue(label: name)
                airs[name] = air
                return air
            }
            return air.makeController(for: loop.queue.queue)
        }
    }
}
