import BluetoothTypes
import Profiles
import Synchronization

/// The number of indications of each characteristic that clients have yet to confirm.
final class UnconfirmedIndications: Sendable {
    /// Maximum number for one characteristic.
    static let limit = 256

    private let counts = Mutex<[AttributeHandle: Int]>([:])

    /// Counts an indication, which must be followed by ``end(_:)``.
    ///
    /// - Throws: if as many wait as may.
    func begin(_ handle: AttributeHandle) throws(ArgumentProblem) {
        let isCounted = counts.withLock { counts in
            guard counts[handle, default: 0] < UnconfirmedIndications.limit else { return false }
            counts[handle, default: 0] += 1
            return true
        }
        guard !isCounted else { return }
        throw ArgumentProblem(
            "\(UnconfirmedIndications.limit) indications of \(handle) wait for clients to confirm them; try again later"
        )
    }

    /// Every client has confirmed an indication, or has disconnected.
    func end(_ handle: AttributeHandle) {
        counts.withLock { counts in
            counts[handle, default: 0] -= 1
            if counts[handle] == 0 { counts[handle] = nil }
        }
    }
}
