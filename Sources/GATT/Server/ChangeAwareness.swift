/// Whether a client knows the database as it is (Vol 3, Part G, 2.5.2.1).
///
/// The server counts the revisions of its database; a client that knew an earlier one than there is now has missed a
/// change, whether or not it uses robust caching: that decides only what the server does about it.
struct ChangeAwareness: Equatable {
    private enum State: Equatable {
        case aware(of: UInt64)
        case unaware
        /// Database Out Of Sync has been answered, or the Database Hash of this revision read: the next request makes the
        /// client aware.
        case told(of: UInt64)
    }

    private var state: State
    /// Whether the client has been told of the database on this connection.
    private(set) var hasBeenTold = false

    /// A client that has just connected, and of which nothing is known.
    init(revision: UInt64) {
        state = .aware(of: revision)
    }

    /// Whether the client knows this revision. One that was told is still unaware until its next request.
    func isAware(of revision: UInt64) -> Bool {
        state == .aware(of: revision)
    }

    /// Takes note of a request, before it is served.
    mutating func requestArrived(at revision: UInt64) {
        switch state {
        case .told(revision): state = .aware(of: revision)
        case .aware(revision), .unaware: break
        case .aware, .told: state = .unaware
        }
    }

    /// Database Out Of Sync is answered, or the Database Hash read.
    mutating func tell(of revision: UInt64) {
        hasBeenTold = true
        if state != .aware(of: revision) { state = .told(of: revision) }
    }

    /// The client has confirmed a Service Changed indication that was sent of this revision.
    mutating func confirm(_ revision: UInt64) {
        hasBeenTold = true
        state = .aware(of: revision)
    }

    /// The client has missed a change while it was not connected.
    mutating func forget() {
        state = .unaware
    }
}
