import BluetoothTypes
import ByteCoding
import HCI
import L2CAP

/// The current properties of a link.
public struct LinkInformation: Hashable, Sendable {
    public let identifier: LinkIdentifier
    /// The peer's identity address, if a bond revealed it when the link was made; otherwise the address that the peer
    /// used.
    public let peer: DeviceAddress
    /// The addresses that were used on air when the link was made; with privacy, these are private addresses.
    public let ownAddress: DeviceAddress
    public let peerAddress: DeviceAddress
    public let isCentral: Bool
    /// ATT_MTU in bytes.
    public let mtu: Int
    public let parameters: NegotiatedConnectionParameters
    /// The longest Link Layer payload in each direction, in bytes.
    public let maximumTransmitOctets: Int
    public let maximumReceiveOctets: Int
    public let transmitPHY: PHY
    public let receivePHY: PHY
}

extension BluetoothHost {
    package func information(on identifier: LinkIdentifier) throws(HostError) -> LinkInformation {
        let link = try link(identifier)
        return LinkInformation(
            identifier: identifier,
            peer: link.peer,
            ownAddress: link.ownAddress,
            peerAddress: link.peerAddress,
            isCentral: link.role == .central,
            mtu: link.att.mtu,
            parameters: link.parameters,
            maximumTransmitOctets: Int(link.maximumTransmitOctets),
            maximumReceiveOctets: Int(link.maximumReceiveOctets),
            transmitPHY: link.transmitPHY,
            receivePHY: link.receivePHY
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
    private func linkError(_ failure: CommandFailure, on identifier: LinkIdentifier) -> HostError {
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
        try await wait(for: .connectionUpdate, of: identifier, .parameters(parameters))
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
        add(.callback(completion), for: .connectionUpdate, of: identifier, .parameters(parameters))
    }

    /// Changes the connection's parameters, likewise, and reports no outcome. A newer request replaces a waiting one.
    package func beginUpdatingParameters(_ parameters: ConnectionParameters, of identifier: LinkIdentifier) {
        defer { endInput() }
        guard parameters.isValid, let link = links[identifier] else { return }
        link.connectionUpdates.appendUnawaited(.parameters(parameters))
        begin(.connectionUpdate, of: link)
    }

    private func requestParameters(_ parameters: ConnectionParameters, of link: Link) {
        switch link.role {
        case .central:
            let command = LEConnectionUpdate(
                connectionHandle: link.handle,
                connectionIntervalMin: parameters.intervalMinimum,
                connectionIntervalMax: parameters.intervalMaximum,
                maxLatency: parameters.latency,
                supervisionTimeout: parameters.timeout
            )
            request(command, for: .connectionUpdate, of: link)
        case .peripheral:
            let request = ConnectionParameterUpdateRequest(
                intervalMin: parameters.intervalMinimum,
                intervalMax: parameters.intervalMaximum,
                latency: parameters.latency,
                timeout: parameters.timeout
            )
            var buffer = sender.takeBuffer()
            do throws(SignalingChannel.RequestError) {
                try link.signaling.requestParameterUpdate(request, at: loop.now, into: &buffer)
                send(consume buffer, .signaling, on: .signaling, of: link)
                armTimer(of: link)
                endInput()
            } catch {
                sender.recycle(buffer)
                guard error != .requestPending else { return postpone(.connectionUpdate, of: link) }
                end(.connectionUpdate, of: link, .failure(.invalidArgument("\(error)")))
            }
        }
    }

    /// Postpones the current procedure of a kind until the peer has answered an earlier request.
    private func postpone(_ procedure: LinkProcedure, of link: Link) {
        timers.cancel(link[keyPath: procedure.queue].timer)
        link[keyPath: procedure.queue].timer = nil
        link[keyPath: procedure.queue].postpone()
    }

    /// Waits until a procedure of the Link Layer ends.
    private func wait(
        for procedure: LinkProcedure,
        of identifier: LinkIdentifier,
        _ request: LinkRequest
    ) async throws(HostError) {
        try await wait(for: .procedure(procedure, identifier)) { host, call in
            host.add(.task(call), for: procedure, of: identifier, request)
        }
    }

    /// Adds a call to those that request a procedure.
    private func add(
        _ caller: Caller,
        for procedure: LinkProcedure,
        of identifier: LinkIdentifier,
        _ request: LinkRequest
    ) {
        guard let link = links[identifier] else { return end(caller, .failure(endOfLink(identifier))) }
        link[keyPath: procedure.queue].append(caller, request)
        begin(procedure, of: link)
    }

    /// Starts the timer that ends the current procedure of a kind after 40 s, the time that the Link Layer allows for
    /// it (Vol 6, Part B, 5.2).
    func startTimer(of procedure: LinkProcedure, on link: Link) {
        link[keyPath: procedure.queue].timer = schedule(.procedure(procedure, link.identifier), after: .seconds(40))
    }

    /// Starts the next procedure of a kind, unless one is running.
    func begin(_ procedure: LinkProcedure, of link: Link) {
        // While the host abandons the controller, the calls fail when their links end.
        guard power == .on, let request = link[keyPath: procedure.queue].begin() else { return }
        startTimer(of: procedure, on: link)
        switch request {
        case .parameters(let parameters): requestParameters(parameters, of: link)
        case .peerParameters(let parameters):
            let command = LEConnectionUpdate(
                connectionHandle: link.handle,
                connectionIntervalMin: parameters.intervalMin,
                connectionIntervalMax: parameters.intervalMax,
                maxLatency: parameters.latency,
                supervisionTimeout: parameters.timeout
            )
            self.request(command, for: procedure, of: link)
        case .phys(let transmit, let receive):
            self.request(
                LESetPHY(connectionHandle: link.handle, txPHYs: transmit, rxPHYs: receive),
                for: procedure,
                of: link
            )
        }
    }

    /// Sends the command that starts a procedure. The procedure ends if the controller refuses the command. If the controller
    /// is lost, it ends with the link.
    private func request(_ command: some HCI.Command, for procedure: LinkProcedure, of link: Link) {
        let identifier = link.identifier
        send(command) { [weak self] result in
            guard case .failure(let failure) = result, !failure.endsLinks else { return }
            self?.assumeIsolated { host in
                guard let link = host.links[identifier] else { return }
                host.end(procedure, of: link, .failure(.command(failure)))
            }
        }
    }

    /// Ends the current procedure of a kind, and starts the next.
    func end(_ procedure: LinkProcedure, of link: Link, _ result: Result<Void, HostError>) {
        timers.cancel(link[keyPath: procedure.queue].timer)
        link[keyPath: procedure.queue].timer = nil
        if let caller = link[keyPath: procedure.queue].end() { end(caller, result) }
        begin(procedure, of: link)
    }

    /// Ends all procedures of a link that has ended.
    func endProcedures(of link: Link, _ error: HostError) {
        for procedure in [LinkProcedure.connectionUpdate, .phyUpdate] {
            timers.cancel(link[keyPath: procedure.queue].timer)
            for caller in link[keyPath: procedure.queue].removeAll() { end(caller, .failure(error)) }
        }
    }

    /// Requests other PHYs; the link then uses those that both sides support. An earlier change of the link is finished
    /// first. Cancelling the task ends the wait; the PHYs may change nevertheless.
    package func setPHY(transmit: PHYSet, receive: PHYSet, of identifier: LinkIdentifier) async throws(HostError) {
        if let error = obstacleToPHYs(of: identifier) { throw error }
        try await wait(for: .phyUpdate, of: identifier, .phys(transmit: transmit, receive: receive))
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
        add(.callback(completion), for: .phyUpdate, of: identifier, .phys(transmit: transmit, receive: receive))
    }

    /// The reason why the PHYs of a link cannot be changed; nil if they can.
    private func obstacleToPHYs(of identifier: LinkIdentifier) -> HostError? {
        guard links[identifier] != nil else { return endOfLink(identifier) }
        return information?.commands.contains(LESetPHY.self) == true
            ? nil : .notSupported("this controller has only the 1M PHY")
    }

    /// Requests a longer or shorter maximum Link Layer payload.
    ///
    /// - Parameter octets: the maximum payload in bytes, 27 to 251.
    package func setDataLength(octets: UInt16, of identifier: LinkIdentifier) async throws(HostError) {
        let link = try link(identifier)
        guard (27...251).contains(octets) else { throw .invalidArgument("a data length is 27 to 251 bytes") }
        do throws(CommandFailure) {
            // On the 1M PHY a byte takes 8 us; 14 bytes surround the payload (Vol 6, Part B, 4.5.10).
            try await perform(
                LESetDataLength(connectionHandle: link.handle, txOctets: octets, txTime: (octets + 14) * 8)
            )
        } catch {
            throw linkError(error, on: identifier)
        }
    }
}

extension CommandFailure {
    /// Whether the host abandons the controller because of this failure, or has already done so. All links end then.
    fileprivate var endsLinks: Bool {
        switch self {
        case .timedOut, .aborted: true
        case .status, .malformedReply: false
        }
    }
}

/// A request for a Link Layer procedure.
enum LinkRequest {
    case parameters(ConnectionParameters)
    /// A peripheral's request, which this host has accepted.
    case peerParameters(ConnectionParameterUpdateRequest)
    case phys(transmit: PHYSet, receive: PHYSet)
}

extension LinkProcedure {
    /// The calls of a link that request this procedure.
    var queue: ReferenceWritableKeyPath<Link, ProcedureQueue<LinkRequest>> {
        switch self {
        case .connectionUpdate: \.connectionUpdates
        case .phyUpdate: \.phyUpdates
        }
    }
}
