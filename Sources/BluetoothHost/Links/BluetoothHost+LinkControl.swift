import BLEHCI
import BluetoothTypes

/// The current properties of a link.
public struct LinkInformation: Hashable, Sendable {
    /// The identifier of the link.
    public let identifier: LinkIdentifier
    /// The peer's identity address, if a bond revealed it when the link was made; otherwise the address that the peer
    /// used.
    public let peer: DeviceAddress
    /// The peer's identity address, if a bond revealed it when the link was made, or a pairing on the link since then;
    /// otherwise the address that the peer used.
    public let identity: DeviceAddress
    /// The address of this device that was used on air when the link was made; with privacy, a private address.
    public let ownAddress: DeviceAddress
    /// The peer's address that was used on air when the link was made; with privacy, a private address.
    public let peerAddress: DeviceAddress
    /// Whether this device is the central of the link.
    public let isCentral: Bool
    /// ATT_MTU of the fixed channel, in bytes.
    public let mtu: Int
    /// ATT_MTU of each enhanced ATT bearer, in bytes, in the order in which they were opened.
    public let enhancedBearerMTUs: [Int]
    /// The connection parameters in use.
    public let parameters: NegotiatedConnectionParameters
    /// The longest Link Layer payload that is sent, in bytes.
    public let maximumTransmitOctets: Int
    /// The longest Link Layer payload that is received, in bytes.
    public let maximumReceiveOctets: Int
    /// The PHY of sent packets.
    public let transmitPHY: PHY
    /// The PHY of received packets.
    public let receivePHY: PHY
}

extension BluetoothHost {
    package func information(on identifier: LinkIdentifier) throws(HostError) -> LinkInformation {
        let link = try link(identifier)
        return LinkInformation(
            identifier: identifier,
            peer: link.peer,
            identity: link.identity,
            ownAddress: link.ownAddress,
            peerAddress: link.peerAddress,
            isCentral: link.role == .central,
            mtu: link.att.mtu,
            enhancedBearerMTUs: (link.att.enhanced?.bearers ?? []).map(\.mtu),
            parameters: link.control.parameters,
            maximumTransmitOctets: Int(link.control.maximumTransmitOctets),
            maximumReceiveOctets: Int(link.control.maximumReceiveOctets),
            transmitPHY: link.control.transmitPHY,
            receivePHY: link.control.receivePHY
        )
    }

    /// The identifiers of all links, oldest first.
    package func linkIdentifiers() -> [LinkIdentifier] {
        links.values.map(\.identifier)
    }

    package func controllerInformation() throws(HostError) -> ControllerInformation {
        guard let information else { throw power == .closed ? .closed : .notReady }
        return information
    }

    /// Reads the link's signal strength in dBm; nil if the controller does not know it.
    package func readRSSI(of identifier: LinkIdentifier) async throws(HostError) -> Int? {
        let link = try link(identifier)
        do throws(CommandFailure) {
            return BluetoothHost.strength(try await perform(ReadRSSI(connectionHandle: link.handle)))
        } catch {
            throw linkError(error, on: identifier)
        }
    }

    /// Reads the link's signal strength in dBm, likewise. `completion` is called on the loop. The command is sent after
    /// those of earlier calls.
    package func beginReadingRSSI(
        of identifier: LinkIdentifier,
        completion: @escaping @Sendable (Result<Int?, HostError>) -> Void
    ) {
        defer { endInput() }
        guard let link = links[identifier] else {
            let error = endOfLink(identifier)
            return deliver(.action { completion(.failure(error)) })
        }
        send(ReadRSSI(connectionHandle: link.handle)) { [weak self] result in
            self?.assumeIsolated { host in
                // If the controller failed, the link has ended by the time of the delivery.
                host.deliver(
                    .action { [weak host] in
                        let result = result.map(BluetoothHost.strength)
                        host?.assumeIsolated { host in
                            completion(result.mapError { host.linkError($0, on: identifier) })
                        }
                    }
                )
            }
        }
    }

    private static func strength(_ parameters: ReadRSSI.ReturnParameters) -> Int? {
        parameters.rssi == 127 ? nil : Int(parameters.rssi)
    }

    /// The error for a failed command about a link: the link's end, if the command failed for that reason.
    func linkError(_ failure: CommandFailure, on identifier: LinkIdentifier) -> HostError {
        links[identifier] == nil ? endOfLink(identifier) : .command(failure)
    }

    /// Changes the connection's parameters, as the central, or requests the change from the central, as the peripheral.
    /// An earlier update of the link is finished first. Cancelling the task ends the wait; the parameters may change
    /// nevertheless.
    package func updateParameters(
        _ parameters: ConnectionParameters,
        of identifier: LinkIdentifier
    ) async throws(HostError) {
        guard parameters.isValid else { throw .invalidArgument("connection parameters out of range") }
        try await request(.parameters(parameters), of: identifier)
    }

    /// Changes the connection's parameters, likewise. `completion` is called on the loop. The procedure follows those
    /// of earlier calls.
    package func beginUpdatingParameters(
        _ parameters: ConnectionParameters,
        of identifier: LinkIdentifier,
        completion: @escaping @Sendable (Result<Void, HostError>) -> Void
    ) {
        defer { endInput() }
        guard parameters.isValid else {
            let error = HostError.invalidArgument("connection parameters out of range")
            return deliver(.callback(completion, .failure(error)))
        }
        request(.parameters(parameters), of: identifier, for: calls.begin(completion))
    }

    /// Changes the connection's parameters, likewise, and reports no outcome. A newer request replaces a waiting one.
    package func beginUpdatingParameters(_ parameters: ConnectionParameters, of identifier: LinkIdentifier) {
        defer { endInput() }
        guard parameters.isValid, let link = links[identifier] else { return }
        perform(link.control.requestUnawaited(parameters, controlContext), of: link)
    }

    /// Requests the parameters of the app that gets a new link, unless the link has them.
    func requestInitialParameters(_ parameters: ConnectionParameters, of identifier: LinkIdentifier) {
        guard let link = links[identifier], !link.isEnding, !link.control.parameters.satisfy(parameters) else { return }
        perform(link.control.requestUnawaited(parameters, controlContext), of: link)
    }

    /// Requests other PHYs; the link then uses those that both sides support. An earlier change of the link is finished
    /// first. Cancelling the task ends the wait; the PHYs may change nevertheless.
    ///
    /// - Parameter coding: the coding that this device prefers when it sends on the LE Coded PHY.
    package func setPHY(
        transmit: PHYSet,
        receive: PHYSet,
        coding: PHYOptions = .noPreference,
        of identifier: LinkIdentifier
    ) async throws(HostError) {
        if let error = obstacleToPHYs(of: identifier) { throw error }
        try await request(.phys(transmit: transmit, receive: receive, coding: coding), of: identifier)
    }

    /// Requests other PHYs, likewise. `completion` is called on the loop. The procedure follows those of earlier calls.
    package func beginSettingPHY(
        transmit: PHYSet,
        receive: PHYSet,
        of identifier: LinkIdentifier,
        completion: @escaping @Sendable (Result<Void, HostError>) -> Void
    ) {
        defer { endInput() }
        if let error = obstacleToPHYs(of: identifier) { return deliver(.callback(completion, .failure(error))) }
        request(.phys(transmit: transmit, receive: receive), of: identifier, for: calls.begin(completion))
    }

    /// Reads the PHYs of a new link, if the controller reports them.
    func readPHYs(of identifier: LinkIdentifier) {
        guard let link = links[identifier], information?.commands.contains(LEReadPHY.self) == true else { return }
        perform(link.control.readPHYs(), of: link)
    }

    /// The reason why the PHYs of a link cannot be changed; nil if they can.
    private func obstacleToPHYs(of identifier: LinkIdentifier) -> HostError? {
        guard links[identifier] != nil else { return endOfLink(identifier) }
        return information?.commands.contains(LESetPHY.self) == true
            ? nil : .notSupported("this controller has only the 1M PHY")
    }

    /// Waits until a procedure of the Link Layer ends.
    func request(_ request: LinkRequest, of identifier: LinkIdentifier) async throws(HostError) {
        try await wait(for: .procedure(identifier)) { host, call in
            host.request(request, of: identifier, for: call)
            host.endInput()
        }
    }

    func request(_ request: LinkRequest, of identifier: LinkIdentifier, for call: CallToken) {
        guard let link = links[identifier] else { return finish(call, endOfLink(identifier)) }
        perform(link.control.request(request, for: call, controlContext), of: link)
    }

    /// Requests a longer or shorter maximum Link Layer payload.
    ///
    /// - Parameter bytes: the maximum payload in bytes, 27 to 251.
    package func setDataLength(bytes: UInt16, of identifier: LinkIdentifier) async throws(HostError) {
        let link = try link(identifier)
        guard (27...251).contains(bytes) else { throw .invalidArgument("a data length is 27 to 251 bytes") }
        do throws(CommandFailure) {
            // On the 1M PHY a byte takes 8 us; 14 bytes surround the payload (Vol 6, Part B, 4.5.10). On the Coded PHY,
            // that time is enough for few bytes. So only the number of bytes is limited.
            let time = max((bytes + 14) * 8, information?.maximumTransmitTime ?? 0)
            try await perform(LESetDataLength(connectionHandle: link.handle, txOctets: bytes, txTime: time))
        } catch {
            throw linkError(error, on: identifier)
        }
    }
}
