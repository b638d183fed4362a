import BluetoothHost
import HCITransport

/// Controllers in this process, by the name of the air that they share.
enum VirtualAdapters {
    /// Makes controllers for a host on a loop; nil where there are none in this process.
    static func opener(on loop: DispatchEventLoop) -> (@Sendable (_ name: String) -> any Transport)? {
        nil
    }
}
