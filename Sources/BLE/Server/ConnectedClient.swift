import BluetoothHost

/// A client that is connected to the server, as it was when ``Peripheral/clients`` was read.
public struct ConnectedClient: Hashable, Sendable, Identifiable {
    /// The identifier of the client while it is connected.
    public let id: ClientID
    /// The client's identity address if it is bonded, otherwise the address with which it connected.
    public let address: DeviceAddress
    /// Whether a bond exists with ``address`` and the link is not yet encrypted with the bond's key.
    ///
    /// The client may then be another device that uses the address. The server refuses its accesses to values of the
    /// app, and disconnects it after ``/BluetoothHost/SecurityPolicy/identityVerificationTimeout``.
    public let isIdentityUnverified: Bool
    /// The client's ATT_MTU in bytes: 23 to 517.
    public let mtu: Int
    /// The strength of the key that encrypts the link; nil if the link is not encrypted.
    public let security: KeyStrength?
    /// The number of Write Commands that were dropped because the app's handlers did not keep up.
    ///
    /// At most 64 commands of a client wait for a handler. A command has no response, so the client does not learn that
    /// it was dropped (Vol 3, Part F, 3.3.2); a client that needs to know uses Write Requests.
    public let droppedCommandCount: Int
}

extension Peripheral {
    /// The clients that are connected now, in the order in which they connected; empty after ``Adapter/close()``.
    ///
    /// Peers that this adapter has connected to itself are not among them, although they can use the server too.
    public var clients: [ConnectedClient] {
        get async { await Peripheral.clients(of: host, accessQueues) }
    }

    private static func clients(
        of host: isolated BluetoothHost,
        _ accessQueues: AccessQueues
    ) -> [ConnectedClient] {
        host.linkIdentifiers().compactMap { client in
            guard let link = try? host.information(on: client), !link.isCentral else { return nil }
            return ConnectedClient(
                id: client,
                address: link.peer,
                isIdentityUnverified: host.identityVerification(on: client) == .unverified,
                mtu: link.mtu,
                security: host.strength(of: client),
                droppedCommandCount: accessQueues.droppedCount(of: client)
            )
        }
    }
}
