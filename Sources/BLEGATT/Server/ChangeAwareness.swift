/// Whether a client knows the current database (Vol 3, Part G, 2.5.2.1).
///
/// The server counts the revisions of its database. A client that knows only an earlier revision has missed a change,
/// whether or not it uses robust caching. Robust caching only decides how the server reacts.
struct ChangeAwareness: Equatable {
    private enum State: Equatable {
        case aware(of: UInt64)
        case unaware
        /// The server has answered Database Out Of Sync, or the client has read the Database Hash of this revision. The
        /// next request makes the client aware.
        case told(of: UInt64)
    }

    private var state: State
    /// Whether the client was informed of the database on this connection.
    private(set) var hasBeenTold = false

    /// Creates the state of a newly connected client without a record.
    init(revision: UInt64) {
        state = .aware(of: revision)
    }

    /// Whether the client knows this revision. An informed client is still unaware until its next request.
    func isAware(of revision: UInt64) -> Bool {
        state == .aware(of: revision)
    }

    /// Records a request before it is served.
    mutating func requestArrived(at revision: UInt64) {
        switch state {
        case .told(revision): state = .aware(of: revision)
        case .aware(revision), .unaware: break
        case .aware, .told: state = .unaware
        }
    }

    /// Records that Database Out Of Sync was answered, or the Database Hash read.
    mutating func tell(of revision: UInt64) {
        hasBeenTold = true
        if state != .aware(of: revision) { state = .told(of: revision) }
    }

    /// Records that the client has confirmed a Service Changed indication of this revision. The client may know a later
    /// one already: it can read the Database Hash before it confirms.
    mutating func confirm(_ revision: UInt64) {
        hasBeenTold = true
        switch state {
        case .aware(let known) where known > revision: break
        case .told(let known) where known > revision: break
        case .aware, .told, .unaware: state = .aware(of: revision)
        }
    }

    /// Records that another device may be the client now. It knows the database only if no change was missed on this
    /// connection.
    mutating func clientMayHaveChanged(at revision: UInt64) {
        if !isAware(of: revision) { state = .unaware }
        hasBeenTold = false
    }

    /// Records that the client has missed a change while it was not connected.
    mutating func forget() {
        state = .unaware
    }
}
