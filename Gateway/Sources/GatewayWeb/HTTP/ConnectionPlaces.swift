import GatewayCore
import NIOCore
import Synchronization

/// The connections to the web server. If there are too many, the oldest one of the network with the most is closed, so a
/// machine in the network cannot keep others out.
final class ConnectionPlaces: Sendable {
    private struct Place {
        let channel: any Channel
        let network: NetworkPrefix
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
        let place = Place(channel: channel, network: NetworkPrefix(channel.remoteAddress?.ipAddress ?? "?"))
        let displaced = state.withLock { state -> (any Channel)? in
            guard !state.isClosed else { return channel }
            state.places.append(place)
            guard state.places.count > limit else { return nil }
            let counts = state.places.reduce(into: [:]) { $0[$1.network, default: 0] += 1 }
            let greatest = counts.values.max()
            return state.places.firstIndex { counts[$0.network] == greatest }.map {
                state.places.remove(at: $0).channel
            }
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
