import BLEHCITransport
import Synchronization

/// How the capture of an adapter has ended.
package final class CaptureOutcome: Sendable {
    private let error = Mutex<TransportError?>(nil)

    package init() {}

    /// The error that ended the capture early.
    var failure: TransportError? { error.withLock { $0 } }

    func set(_ failure: TransportError) {
        error.withLock { $0 = failure }
    }
}
