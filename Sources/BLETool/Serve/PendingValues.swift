import BluetoothTypes
import Profiles
import Synchronization

/// The number of submitted values of each characteristic that clients have yet to take.
final class PendingValues: Sendable {
    enum Kind: String, Sendable {
        case notifications
        case indications
    }

    /// Maximum number for one characteristic.
    static let limit = 256

    private let kind: Kind
    private let counts = Mutex<[AttributeHandle: Int]>([:])

    init(_ kind: Kind) {
        self.kind = kind
    }

    /// Counts a value, which must be followed by ``end(_:)``.
    ///
    /// - Throws: if ``limit`` values are pending.
    func begin(_ handle: AttributeHandle) throws(ArgumentProblem) {
        let isCounted = counts.withLock { counts in
            guard counts[handle, default: 0] < PendingValues.limit else { return false }
            counts[handle, default: 0] += 1
            return true
        }
        guard !isCounted else { return }
        throw ArgumentProblem(
            "\(PendingValues.limit) \(kind.rawValue) of \(handle) wait for clients to take them; try again later"
        )
    }

    /// A value was taken, or its clients have disconnected.
    func end(_ handle: AttributeHandle) {
        counts.withLock { counts in
            counts[handle, default: 0] -= 1
            if counts[handle] == 0 { counts[handle] = nil }
        }
    }
}
