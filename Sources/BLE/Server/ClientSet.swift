import BluetoothHost
import Synchronization

/// The clients that are connected, according to the events of the server that an observer has received.
///
/// When the events of a link's end are delivered, the host no longer has the link. So an observer cannot ask the host
/// whether such an event is of a client.
final class ClientSet: Sendable {
    private let clients: Mutex<Set<ClientID>>

    /// - Parameter clients: the clients that are connected when the observer is added.
    init(_ clients: [ClientID]) {
        self.clients = Mutex(Set(clients))
    }

    /// Whether a client has connected, and its disconnection was not received yet.
    func contains(_ client: ClientID) -> Bool { clients.withLock { $0.contains(client) } }

    /// Handles the next event of the server.
    func receive(_ event: ServerRoleEvent) {
        switch event {
        case .connected(let client, _): clients.withLock { _ = $0.insert(client) }
        case .disconnected(let client, _): clients.withLock { _ = $0.remove(client) }
        case .mtuChanged, .access: break
        }
    }
}
