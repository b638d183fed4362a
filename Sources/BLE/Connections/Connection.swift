import BLEHCI
import BluetoothHost

/// The Link Layer connection to a peer, in either role: its subrate, PHYs, transmit powers and path loss.
///
/// ``RemotePeripheral/connection`` and ``Peripheral/connection(to:)`` return it. A connection that has ended throws
/// ``BLEError/disconnected(_:)``. Features that the controller or the peer lacks throw ``BLEError/notSupported(_:)``,
/// or ``BLEError/controllerFailed(_:)`` if only the controller notices.
///
/// ```swift
/// try await peer.connection.requestSubrate(SubrateParameters(factor: 1...10, continuationNumber: 2))
/// for try await event in peer.connection.events(transmitPower: true) { print(event) }
/// ```
public struct Connection: Sendable {
    let host: BluetoothHost
    private let resolve: @Sendable () throws(BLEError) -> LinkIdentifier

    init(host: BluetoothHost, resolve: @escaping @Sendable () throws(BLEError) -> LinkIdentifier) {
        self.host = host
        self.resolve = resolve
    }

    func link() throws(BLEError) -> LinkIdentifier { try resolve() }

    /// The current link.
    ///
    /// - Throws: ``BLEError/disconnected(_:)`` if the connection has ended.
    public var information: LinkInformation {
        get async throws(BLEError) {
            let link = try resolve()
            return try await translating { () throws(HostError) in try await host.information(on: link) }
        }
    }

    // MARK: Parameters

    /// Changes the connection's parameters as the central (Vol 4, Part E, 7.8.18), or requests the change as the
    /// peripheral (Vol 3, Part A, 4.20). Waits until the new parameters are in effect.
    ///
    /// - Parameter parameters: the new parameters. An earlier change of the link is finished first.
    /// - Throws:
    ///   - ``BLEError/invalidArgument(_:)`` if the parameters are out of range, or the supervision timeout is too short
    ///     for the link's subrate
    ///   - ``BLEError/notSupported(_:)`` if the central refuses the request
    ///   - ``BLEError/controllerFailed(_:)`` if the controller or the peer refuses the change
    ///   - ``BLEError/timedOut(_:)`` if the central does not answer the request within 30 s, or the change takes longer
    ///     than 40 s. If this device is the peripheral, the 40 s begin with the central's answer. On a slow link, the
    ///     change may take 2 s and ten times the longest time for which the peripheral does not listen.
    ///   - ``BLEError/disconnected(_:)`` if the link ends
    ///   - ``BLEError/cancelled`` at once if the task is cancelled; the parameters may change nevertheless
    public func updateParameters(_ parameters: ConnectionParameters) async throws(BLEError) {
        let link = try resolve()
        try await translating { () throws(HostError) in try await host.updateParameters(parameters, of: link) }
    }

    /// Requests a subrate, and waits until it is in effect (Vol 4, Part E, 7.8.124). While there is no data, the
    /// devices then use only some of the connection events.
    ///
    /// Both adapters must use subrating: see ``Adapter/Configuration/usesSubrating``. The central decides. As the
    /// peripheral, this device gets what the peer accepts. As the central, it accepts from the peer later what it has
    /// requested last. ``information`` has the result.
    ///
    /// - Parameter parameters: the requested parameters.
    /// - Throws:
    ///   - ``BLEError/invalidArgument(_:)`` if the parameters are out of range, or the supervision timeout is too short
    ///     for them
    ///   - ``BLEError/notSupported(_:)`` if one of the devices does not support subrating
    ///   - ``BLEError/controllerFailed(_:)`` if the controller or the peer refuses
    ///   - ``BLEError/timedOut(_:)`` after 40 s
    ///   - ``BLEError/disconnected(_:)`` if the link ends
    ///   - ``BLEError/cancelled`` at once if the task is cancelled; the subrate may change nevertheless
    public func requestSubrate(_ parameters: SubrateParameters) async throws(BLEError) {
        let link = try resolve()
        try await translating { () throws(HostError) in try await host.requestSubrate(parameters, of: link) }
    }

    /// Requests other PHYs (Vol 4, Part E, 7.8.49); the link then uses PHYs that both sides support. Waits until the
    /// controller has reported the PHYs in use. ``information`` has them.
    ///
    /// - Parameters:
    ///   - transmit: the PHYs on which this device may send: one or more.
    ///   - receive: the PHYs on which this device may receive: one or more.
    ///   - coding: the coding that this device prefers when it sends on the LE Coded PHY. The peer chooses its own.
    /// - Throws:
    ///   - ``BLEError/notSupported(_:)`` if the controller has LE 1M only
    ///   - ``BLEError/controllerFailed(_:)`` if the controller or the peer refuses
    ///   - ``BLEError/timedOut(_:)`` after 40 s; on a slow link after 2 s and ten times the longest time for which the
    ///     peripheral does not listen, if that is longer
    ///   - ``BLEError/disconnected(_:)`` if the link ends
    ///   - ``BLEError/cancelled`` at once if the task is cancelled; the PHYs may change nevertheless
    public func setPHY(
        transmit: PHYSet,
        receive: PHYSet,
        coding: PHYOptions = .noPreference
    ) async throws(BLEError) {
        let link = try resolve()
        try await translating { () throws(HostError) in
            try await host.setPHY(transmit: transmit, receive: receive, coding: coding, of: link)
        }
    }

    // MARK: Transmit power

    /// Reads the transmit power that this controller uses (Vol 4, Part E, 7.8.117).
    ///
    /// - Parameter phy: the PHY that the power is for; nil for the PHY on which the controller sends.
    /// - Throws:
    ///   - ``BLEError/notSupported(_:)`` if the controller does not report the power
    ///   - ``BLEError/controllerFailed(_:)`` if the controller refuses the command
    ///   - ``BLEError/disconnected(_:)`` if the link ends
    public func readTransmitPower(on phy: PHY? = nil) async throws(BLEError) -> LocalTransmitPower {
        let link = try resolve()
        return try await translating { () throws(HostError) in
            try await host.readTransmitPower(phy: phy, of: link)
        }
    }

    /// Reads the transmit power that the peer uses (Vol 4, Part E, 7.8.118). An earlier reading is finished first.
    ///
    /// - Parameter phy: the PHY that the power is for; nil for the PHY on which the peer sends.
    /// - Throws:
    ///   - ``BLEError/notSupported(_:)`` if the controller does not read the power of peers
    ///   - ``BLEError/controllerFailed(_:)`` if the controller or the peer refuses
    ///   - ``BLEError/timedOut(_:)`` after 40 s
    ///   - ``BLEError/disconnected(_:)`` if the link ends
    ///   - ``BLEError/cancelled`` at once if the task is cancelled
    public func readPeerTransmitPower(on phy: PHY? = nil) async throws(BLEError) -> TransmitPower {
        let link = try resolve()
        return try await translating { () throws(HostError) in
            try await host.readPeerTransmitPower(phy: phy, of: link)
        }
    }

    // MARK: Events

    /// Reports changes of parameters, subrate and PHYs, for as long as the result is iterated; on request also changes
    /// of transmit powers and path loss. The controller watches these only while an iteration wants them.
    ///
    /// - Parameters:
    ///   - transmitPower: whether changes of the devices' transmit powers are reported.
    ///   - pathLoss: the zones of path loss whose changes are reported; nil for none. All iterations of a connection
    ///     that want path loss must have the same.
    public func events(transmitPower: Bool = false, pathLoss: PathLossThresholds? = nil) -> LinkEvents {
        LinkEvents(
            connection: self,
            request: LinkEventRequest(transmitPower: transmitPower, pathLoss: pathLoss)
        )
    }
}

extension RemotePeripheral {
    /// The Link Layer connection. It can be used until ``disconnect()`` is called or the link ends.
    public var connection: Connection {
        Connection(host: host) { () throws(BLEError) in try self.usableLink }
    }
}

extension Peripheral {
    /// Returns the Link Layer connection to a client.
    public func connection(to client: ClientID) -> Connection {
        Connection(host: host) { client }
    }
}

extension Central {
    /// Sets the subrate parameters that this adapter accepts as the central from peers of later connections (Vol 4,
    /// Part E, 7.8.123); see ``Adapter/Configuration/usesSubrating``. Without a call, a peer's request for a subrate is
    /// refused until this device has requested one itself. The setting is repeated after a reset of the controller.
    ///
    /// - Parameter parameters: the accepted parameters.
    /// - Throws:
    ///   - ``BLEError/invalidArgument(_:)`` if the parameters are out of range
    ///   - ``BLEError/notSupported(_:)`` if the adapter was opened without subrating, or the controller lacks it
    ///   - ``BLEError/controllerFailed(_:)`` if the controller refuses the command or is reset
    ///   - ``BLEError/notReady`` while the controller is being brought up again
    ///   - ``BLEError/closed`` after ``Adapter/close()``
    public func setDefaultSubrate(_ parameters: SubrateParameters) async throws(BLEError) {
        try await translating { () throws(HostError) in try await host.setDefaultSubrate(parameters) }
    }

    /// Tells the controller which data channels may be used on connections that this adapter has made (Vol 4, Part E,
    /// 7.8.19). It avoids the others, for example those that a wireless network disturbs.
    ///
    /// A controller takes one classification a second. A newer one replaces one that waits. The last one is repeated
    /// after a reset of the controller.
    ///
    /// - Parameter channels: two channels or more, of 0 to 36.
    /// - Throws:
    ///   - ``BLEError/invalidArgument(_:)`` if there are fewer channels
    ///   - ``BLEError/limitReached(_:)`` if 1,024 calls wait
    ///   - ``BLEError/notSupported(_:)`` if the controller accepts no classification
    ///   - ``BLEError/controllerFailed(_:)`` if it refuses the command
    ///   - ``BLEError/notReady`` while it is being brought up again
    ///   - ``BLEError/closed`` after ``Adapter/close()``
    ///   - ``BLEError/cancelled`` at once if the task is cancelled; the classification may take effect nevertheless
    public func classifyChannels(_ channels: ChannelMap) async throws(BLEError) {
        try await translating { () throws(HostError) in try await host.classifyChannels(channels) }
    }
}
