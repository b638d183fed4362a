import BluetoothTypes
import ByteCoding
import HCI
import L2CAP

/// A link as it is.
public struct LinkInformation: Hashable, Sendable {
    public let identifier: LinkIdentifier
    /// Whom the peer is known as: its identity address where a bond tells that.
    public let peer: DeviceAddress
    /// The addresses that the link was made with, as they were sent: private ones, where they are used.
    public let ownAddress: DeviceAddress
    public let peerAddress: DeviceAddress
    public let isCentral: Bool
    /// ATT_MTU in octets.
    public let mtu: Int
    public let parameters: NegotiatedConnectionParameters
    /// The longest Link Layer payload each way, in octets.
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

    /// The links that there are, oldest first.
    package func linkIdentifiers() -> [LinkIdentifier] {
        links.values.map(\.identifier)
    }

    package func controllerInformation() throws(HostError) -> ControllerInformation {
        guard let information else { throw power == .closed ? .closed : .notReady }
        return information
    }

    /// The strength of the link's signal in dBm; nil where the controller does not know it.
    package func readRSSI(of identifier: LinkIdentifier) async throws(HostError) -> Int? {
        let link = try link(identifier)
        do throws(CommandFailure) {
            let rssi = try await perform(ReadRSSI(connectionHandle: link.handle)).rssi
            return rssi == 127 ? nil : Int(rssi)
        } catch {
            throw links[identifier] == nil
                ? .disconnected(endedLinks[identifier] ?? .adapterClosed) : .command(error)
        }
    }

    /// Changes the connection's parameters, as the central, or asks the central to, as the peripheral. Cancelling the task
    /// ends the wait; the parameters may change nevertheless.
    package func updateParameters(
        _ parameters: ConnectionParameters,
        of identifier: LinkIdentifier
    ) async throws(HostError) {
        guard parameters.isValid else { throw .invalidArgument("connection parameters out of range") }
        try await wait(for: .connectionUpdate, of: identifier) { host, call in
            if let link = host.links[identifier] { host.requestParameters(parameters, of: link, for: call) }
        }
    }

    private func requestParameters(_ parameters: ConnectionParameters, of link: Link, for call: CallToken) {
        switch link.role {
        case .central:
            let command = LEConnectionUpdate(
                connectionHandle: link.handle,
                connectionIntervalMin: parameters.intervalMinimum,
                connectionIntervalMax: parameters.intervalMaximum,
                maxLatency: parameters.latency,
                supervisionTimeout: parameters.timeout
            )
            let identifier = link.identifier
            send(command) { [weak self] result in
                guard case .failure(let failure) = result else { return }
                self?.assumeIsolated { $0.resume(\.parameterWaiters, of: identifier, .failure(.command(failure))) }
            }
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
                link.remove(call, waitingFor: .connectionUpdate)
                end(
                    call,
                    .failure(
                        error == .requestPending
                            ? .notSupported("another update of the parameters is under way")
                            : .invalidArgument("\(error)")
                    )
                )
            }
        }
    }

    /// Waits for a procedure of the Link Layer, though no longer than the procedure may take (Vol 6, Part B, 5.2). Cancelling
    /// the task ends the wait, not the procedure.
    ///
    /// - Parameter begin: asks the controller for the procedure.
    private func wait(
        for procedure: LinkProcedure,
        of identifier: LinkIdentifier,
        begin: @escaping @Sendable (isolated BluetoothHost, CallToken) -> Void
    ) async throws(HostError) {
        try await wait(for: .procedure(procedure, identifier)) { host, call in
            guard let link = host.links[identifier] else {
                return host.end(call, .failure(host.endOfLink(identifier)))
            }
            link[keyPath: procedure.waiters].append(call)
            let timer = host.schedule(.procedure(procedure, identifier, call), after: .seconds(40))
            host.calls.setTimer(timer, of: call)
            begin(host, call)
        }
    }

    /// Ends a call whose procedure has taken too long.
    func procedureTimedOut(_ procedure: LinkProcedure, of identifier: LinkIdentifier, _ call: CallToken) {
        links[identifier]?.remove(call, waitingFor: procedure)
        end(call, .failure(.timedOut))
    }

    /// Tells the calls that wait for a procedure what has become of it.
    func resume(
        _ waiters: ReferenceWritableKeyPath<Link, [CallToken]>,
        of link: Link,
        _ result: Result<Void, HostError>
    ) {
        let all = link[keyPath: waiters]
        link[keyPath: waiters] = []
        for call in all { end(call, result) }
    }

    private func resume(
        _ waiters: ReferenceWritableKeyPath<Link, [CallToken]>,
        of identifier: LinkIdentifier,
        _ result: Result<Void, HostError>
    ) {
        if let link = links[identifier] { resume(waiters, of: link, result) }
    }

    /// Asks for other PHYs; the link then uses what both sides can do. Cancelling the task ends the wait; the PHYs may change
    /// nevertheless.
    package func setPHY(transmit: PHYSet, receive: PHYSet, of identifier: LinkIdentifier) async throws(HostError) {
        guard information?.commands.contains(LESetPHY.self) == true else {
            throw .notSupported("this controller has only the 1M PHY")
        }
        try await wait(for: .phyUpdate, of: identifier) { host, _ in
            if let link = host.links[identifier] { host.requestPHYs(transmit: transmit, receive: receive, of: link) }
        }
    }

    private func requestPHYs(transmit: PHYSet, receive: PHYSet, of link: Link) {
        let identifier = link.identifier
        send(LESetPHY(connectionHandle: link.handle, txPHYs: transmit, rxPHYs: receive)) { [weak self] result in
            guard case .failure(let failure) = result else { return }
            self?.assumeIsolated { $0.resume(\.phyWaiters, of: identifier, .failure(.command(failure))) }
        }
    }

    /// Asks for longer or shorter Link Layer payloads.
    ///
    /// - Parameter octets: 27 to 251.
    package func setDataLength(octets: UInt16, of identifier: LinkIdentifier) async throws(HostError) {
        let link = try link(identifier)
        guard (27...251).contains(octets) else { throw .invalidArgument("a data length is 27 to 251 octets") }
        do throws(CommandFailure) {
            // On the 1M PHY an octet takes 8 us; 14 octets surround the payload (Vol 6, Part B, 4.5.10).
            try await perform(
                LESetDataLength(connectionHandle: link.handle, txOctets: octets, txTime: (octets + 14) * 8)
            )
        } catch {
            throw .command(error)
        }
    }
}

extension LinkProcedure {
    /// The calls of a link that wait for the procedure.
    var waiters: ReferenceWritableKeyPath<Link, [CallToken]> {
        switch self {
        case .connectionUpdate: \.parameterWaiters
        case .phyUpdate: \.phyWaiters
        }
    }
}
