import GatewayCore
import NIOCore
import Synchronization

/// The connections to the web server. If there are too many, one of the address with the most is closed, so one address
/// cannot keep others out; see ``ConnectionOrigin``.
final class ConnectionPlaces: Sendable {
    private struct Place {
        let channel: any Channel
        let origin: ConnectionOrigin
    }

    private struct State {
        /// The oldest first.
        var places: [Place] = []
        var isClosed = false
    }

    private let limit: Int
    private let state = Mutex(State())

    init(limit: Int) {
        self.limit = limit
    }

    /// Adds a connection, and closes another one if there are too many.
    func add(_ channel: any Channel) {
        let place = Place(channel: channel, origin: ConnectionOrigin(channel.remoteAddress?.ipAddress ?? "?"))
        let displaced = state.withLock { state -> (any Channel)? in
            guard !state.isClosed else { return channel }
            state.places.append(place)
            guard state.places.count > limit else { return nil }
            let index = ConnectionOrigin.displacedIndex(among: state.places.map(\.origin))
            return index.map { state.places.remove(at: $0).channel }
        }
        displaced?.close(promise: nil)
    }

    func remove(_ channel: any Channel) {
        state.withLock { state in state.places.removeAll { $0.channel === channel } }
    }

    var count: Int { state.withLock(\.places.count) }

    /// Closes all connections, also those that are added later.
    func close() {
        let channels = state.withLock { state in
            state.isClosed = true
            return state.places.map(\.channel)
        }
        for channel in channels { channel.close(promise: nil) }
    }
}
