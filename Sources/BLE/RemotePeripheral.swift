import BLEGATT
import BLEHCI
import BluetoothHost
import Synchronization

/// A connection to a peripheral.
///
/// ## Sharing a link
///
/// Two devices have at most one link (Vol 6, Part B, 4.5). Each call of ``Central/connect(to:timeout:parameters:)``
/// returns a `RemotePeripheral` of its own; several of them may share the link. ``disconnect()`` ends the connection
/// for its own `RemotePeripheral`: its subscriptions end, and every later call on it throws
/// ``BLEError/disconnected(_:)``. The link ends with the last one. A `RemotePeripheral` that is deallocated without
/// ``disconnect()`` leaves the link as it is and no longer counts.
public final class RemotePeripheral: Sendable {
    /// The peripheral's address: its identity address, if a bond revealed it when the link was made.
    public let address: DeviceAddress
    let host: BluetoothHost
    package let link: LinkIdentifier
    /// Whether ``disconnect()`` was called.
    private let isReleased = Atomic(false)
    let ending = ConnectionEnd()
    /// Whether `ending` observes the link.
    private let isLinkObserved = Atomic(false)
    /// The identifier of that observer.
    private let endObserver = Atomic<UInt64>(0)

    /// - Parameter link: a link that the caller holds; this object takes over the hold.
    init(host: BluetoothHost, link: LinkIdentifier, address: DeviceAddress) {
        self.host = host
        self.link = link
        self.address = address
    }

    deinit {
        let isReleased = isReleased.load(ordering: .relaxed)
        let observer = isLinkObserved.load(ordering: .relaxed) ? endObserver.load(ordering: .relaxed) : nil
        guard !isReleased || observer != nil else { return }
        host.cleanUp { [link] host in
            if let observer { host.removeEndObserver(observer, of: link) }
            if !isReleased { host.discardHold(on: link) }
        }
    }

    /// The link, as long as ``disconnect()`` was not called.
    var usableLink: LinkIdentifier {
        get throws(BLEError) {
            guard !isReleased.load(ordering: .relaxed) else {
                throw .disconnected(ending.reason ?? RemotePeripheral.releaseReason)
            }
            return link
        }
    }

    /// The reason of an end that ``disconnect()`` caused.
    private static var releaseReason: DisconnectionReason { .controller(.connectionTerminatedByLocalHost) }

    // MARK: The link

    /// The current link.
    ///
    /// - Throws: ``BLEError/disconnected(_:)`` if the link has ended, or ``disconnect()`` was called.
    public var linkInformation: LinkInformation {
        get async throws(BLEError) {
            let link = try usableLink
            return try await translating { () throws(HostError) in try await host.information(on: link) }
        }
    }

    /// ATT_MTU in bytes; 23 if the link has ended.
    public var mtu: Int {
        get async { (try? await linkInformation.mtu) ?? 23 }
    }

    /// Whether the link exists and ``disconnect()`` was not called.
    public var isConnected: Bool {
        get async { (try? await linkInformation) != nil }
    }

    /// The interval, latency and supervision timeout in use.
    ///
    /// - Throws: ``BLEError/disconnected(_:)`` if the link has ended, or ``disconnect()`` was called.
    public var connectionParameters: NegotiatedConnectionParameters {
        get async throws(BLEError) { try await linkInformation.parameters }
    }

    /// Reads the strength of the link's signal.
    ///
    /// - Returns: the strength in dBm; nil if the controller does not know it.
    /// - Throws: ``BLEError/disconnected(_:)`` if the link has ended, or ``disconnect()`` was called, and
    ///   ``BLEError/controllerFailed(_:)`` if the controller refuses the command.
    public func readRSSI() async throws(BLEError) -> Int? {
        let link = try usableLink
        return try await translating { () throws(HostError) in try await host.readRSSI(of: link) }
    }

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
    public func updateConnectionParameters(_ parameters: ConnectionParameters) async throws(BLEError) {
        let link = try usableLink
        try await translating { () throws(HostError) in try await host.updateParameters(parameters, of: link) }
    }

    /// Requests other PHYs (Vol 4, Part E, 7.8.49); the link then uses PHYs that both sides support. Waits until the
    /// controller has reported the PHYs in use. ``linkInformation`` has them.
    ///
    /// - Parameters:
    ///   - transmit: the PHYs on which this device may send: one or more.
    ///   - receive: the PHYs on which this device may receive: one or more.
    /// - Throws:
    ///   - ``BLEError/notSupported(_:)`` if the controller has LE 1M only
    ///   - ``BLEError/controllerFailed(_:)`` if the controller or the peer refuses
    ///   - ``BLEError/timedOut(_:)`` after 40 s; on a slow link after 2 s and ten times the longest time for which the
    ///     peripheral does not listen, if that is longer
    ///   - ``BLEError/disconnected(_:)`` if the link ends
    ///   - ``BLEError/cancelled`` at once if the task is cancelled; the PHYs may change nevertheless
    public func setPHY(transmit: PHYSet, receive: PHYSet) async throws(BLEError) {
        let link = try usableLink
        try await translating { () throws(HostError) in
            try await host.setPHY(transmit: transmit, receive: receive, of: link)
        }
    }

    /// Suggests the maximum length of the Link Layer payloads that this device sends (Vol 4, Part E, 7.8.33).
    ///
    /// On each new link, the host suggests the longest payload that the controller can send. The call returns when the
    /// controller has accepted the length. The devices may use a shorter one, which ``linkInformation`` has later.
    ///
    /// - Parameter bytes: 27 to 251 bytes.
    /// - Throws:
    ///   - ``BLEError/invalidArgument(_:)`` if the length is out of range
    ///   - ``BLEError/controllerFailed(_:)`` if the controller refuses the command
    ///   - ``BLEError/disconnected(_:)`` if the link has ended
    public func setDataLength(bytes: UInt16) async throws(BLEError) {
        let link = try usableLink
        try await translating { () throws(HostError) in try await host.setDataLength(bytes: bytes, of: link) }
    }

    /// Ends this connection, once the values written without response have been sent. If no other `RemotePeripheral`
    /// shares the link, the link ends and the call waits for that; see <doc:RemotePeripheral#Sharing-a-link>. If the
    /// task is cancelled, the call returns at once. The connection ends nevertheless; the link ends once those values
    /// have been sent, or after 2 s.
    public func disconnect() async {
        let isFirst = !isReleased.exchange(true, ordering: .relaxed)
        await host.flush(link)
        if isFirst {
            let earlierEnd = await host.release(link)
            ending.end(earlierEnd ?? RemotePeripheral.releaseReason, at: host.loop.now)
        } else {
            // The first call may not have begun to end the link.
            _ = await ending.wait()
            await host.waitIfDisconnecting(link)
        }
    }

    /// Makes `ending` observe the link, unless it does already.
    func observeEnd() async {
        guard !isLinkObserved.exchange(true, ordering: .relaxed) else { return }
        let observer = await host.observeEnd(of: link) { [ending, loop = host.loop] in ending.end($0, at: loop.now) }
        endObserver.store(observer, ordering: .relaxed)
    }

    /// Waits until the link has ended or ``disconnect()`` was called.
    ///
    /// - Returns: nil if the task is cancelled first.
    func end() async -> DisconnectionReason? {
        await observeEnd()
        return await ending.wait()
    }

    /// Waits until the link has ended or ``disconnect()`` was called, and returns why.
    ///
    /// - Throws: ``BLEError/cancelled`` at once if the task is cancelled.
    public func disconnection() async throws(BLEError) -> DisconnectionReason {
        guard let reason = await end() else { throw .cancelled }
        return reason
    }

    // MARK: Procedures

    /// Runs a procedure of the client to its end.
    ///
    /// - Parameter characteristic: the value handle of the procedure's characteristic. Procedures of different
    ///   characteristics may run at the same time. With nil, the procedure runs on the fixed channel.
    @inline(__always)
    nonisolated(nonsending) func perform<P: ClientProcedure>(
        _ procedure: P,
        of characteristic: AttributeHandle? = nil,
        ofSeveral characteristics: [AttributeHandle] = []
    ) async throws(BLEError) -> P.Output {
        let link = try usableLink
        let run = TypedProcedureRun(procedure)
        do throws(HostError) {
            let elevationFailure = try await host.finish(
                run,
                on: link,
                characteristic: characteristic,
                characteristics: characteristics
            )
            do throws(ClientError) {
                return try run.output()
            } catch {
                throw await host.hostError(error, on: link, elevationFailure)
            }
        } catch {
            throw BLEError(error, doing: "the operation")
        }
    }
}
