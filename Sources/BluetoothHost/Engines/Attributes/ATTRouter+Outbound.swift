import BLEATT
import BLEByteCoding
import BLEGATT
import BLEL2CAP
import BluetoothTypes
import DequeModule

// The calls of apps and the order in which they leave the link: see `OutboundLanes`.
extension ATTRouter {
    /// What the host does next for a call that has left its lane.
    enum Outbound {
        /// Nothing: no call can leave its lane.
        case idle
        /// Takes the effects of the client, then sends the request that was written, if there is one.
        case client(ATTOpcode?)
        /// Nothing more for this call: the client has the procedure, and another request is in flight.
        case started
        /// Sends the next request of this bearer, whose client has the procedure.
        case startedOnEnhancedBearer(EnhancedBearer)
        /// Sends the command that was written and ends the call. With a signature, the caller writes and signs the
        /// command.
        case write(WriteCall, WriteCall.Signature?)
        /// Ends the call in an error.
        case refusedWrite(WriteCall, HostError)
        /// Sends the request for these channels.
        case channelRequest(ChannelIdentifierList)
        /// Sends the notification that was written, if the peer is subscribed, and ends the call.
        case notification(ValueCall, isWritten: Bool)
        /// Sends the Multiple Handle Value Notification that was written, and ends the calls.
        case notifications([ValueCall])
        /// Calls ``ATTRouter/indicate(_:at:into:)``.
        case indication(ValueCall)
        /// Takes the effects of the server session, then performs the action.
        case server(ServerAction)
    }

    /// What the link lets through at the moment.
    struct Conditions {
        /// Whether the link's outbound queue takes another frame of an app.
        var hasRoom: Bool
        /// Whether calls of the client may be sent: the peer has no bond, or is verified.
        var isGateOpen: Bool
    }

    // MARK: Submitting

    /// Appends a call to its lane. The caller then pumps.
    mutating func append(_ work: consuming OutboundLanes.Work) {
        lanes.append(work, sequence: makeSequence())
    }

    private mutating func makeSequence() -> UInt64 {
        lastSequence += 1
        return lastSequence
    }

    /// Whether a procedure can be given to the client at once.
    func canStartAtOnce(_ call: borrowing ProcedureCall, isGateOpen: Bool) -> Bool {
        lanes.client.isEmpty && isGateOpen && !(enhanced?.mustWait(call) ?? false)
    }

    /// Whether a write can be sent at once.
    ///
    /// Inlined, because the compiler would otherwise copy the whole router to the stack for the call.
    @inline(__always)
    func canSendAtOnce(_ call: borrowing WriteCall, _ conditions: Conditions) -> Bool {
        lanes.client.isEmpty && canSend(call, conditions)
    }

    /// Whether a notification can be sent at once.
    @inline(__always)
    func canNotifyAtOnce(hasRoom: Bool) -> Bool {
        lanes.server.isEmpty && hasRoom && !bearer.isDead
    }

    // MARK: Pumping

    /// Begins to send the calls that wait. The caller then calls ``pump(_:into:)`` until it returns ``Outbound/idle``.
    ///
    /// - Returns: false if that is under way: a call that ends may run code that submits the next.
    mutating func beginPumping() -> Bool {
        guard !isPumping else { return false }
        isPumping = true
        return true
    }

    /// Takes the next call that can be sent out of its lane and writes its PDU.
    mutating func pump(_ conditions: Conditions, into buffer: inout PacketBuffer) -> Outbound {
        guard let work = takeNext(conditions) else {
            isPumping = false
            return .idle
        }
        return send(work, conditions, into: &buffer)
    }

    /// Takes the older of the calls at the heads of the lanes, of those that can be sent.
    private mutating func takeNext(_ conditions: Conditions) -> OutboundLanes.Work? {
        let client = lanes.client.first.flatMap { canSend($0.work, conditions) ? $0.sequence : nil }
        let server = lanes.server.first.flatMap { canSend($0.work, conditions) ? $0.sequence : nil }
        if let client, client < server ?? .max { return lanes.popClient()?.work }
        if server != nil { return lanes.popServer()?.work }
        guard isBlockedByIndication else { return nil }
        return lanes.popAnswer().map { .answer($0) }
    }

    /// Whether a call waits though it can be sent.
    func hasSendableCall(_ conditions: Conditions) -> Bool {
        (lanes.client.first.map { canSend($0.work, conditions) } ?? false)
            || (lanes.server.first.map { canSend($0.work, conditions) } ?? false)
    }

    /// After a transaction timeout nothing more leaves on the bearer (Vol 3, Part F, 3.3.3). The calls end with the
    /// link.
    private func canSend(_ work: OutboundLanes.Work, _ conditions: Conditions) -> Bool {
        guard !bearer.isDead else { return false }
        return switch work {
        case .procedure(let call): conditions.isGateOpen && !(enhanced?.mustWait(call) ?? false)
        case .write(let call): canSend(call, conditions)
        case .channelRequest: conditions.isGateOpen && !client.isBusyForCommands && !isElevatingElsewhere
        case .notification: conditions.hasRoom
        case .indication: indicationInFlight == nil
        case .answer: true
        }
    }

    /// A signature proves the client's identity to the server and nothing about the server, so it need not wait for the
    /// gate.
    @inline(__always)
    private func canSend(_ call: borrowing WriteCall, _ conditions: Conditions) -> Bool {
        (call.signature != nil || conditions.isGateOpen) && conditions.hasRoom && !client.isBusyForCommands
            && !bearer.isDead && !(enhanced?.hasProcedure(of: call.handle) ?? false) && !isElevatingElsewhere
    }

    /// Whether an enhanced bearer waits until the link's security has been raised.
    private var isElevatingElsewhere: Bool { enhanced?.isElevating ?? false }

    private var isBlockedByIndication: Bool {
        guard case .indication? = lanes.server.first?.work else { return false }
        return indicationInFlight != nil
    }

    private mutating func send(
        _ work: OutboundLanes.Work,
        _ conditions: Conditions,
        into buffer: inout PacketBuffer
    ) -> Outbound {
        switch work {
        case .procedure(let call):
            if let bearer = start(call) { return .startedOnEnhancedBearer(bearer) }
            guard client.isClosed || canStartRequest(isGateOpen: conditions.isGateOpen) else { return .started }
            return .client(nextRequest(isGateOpen: conditions.isGateOpen, into: &buffer))
        case .write(let call):
            do throws(HostError) {
                return .write(call, try write(call, into: &buffer))
            } catch {
                return .refusedWrite(call, error)
            }
        case .channelRequest(let channels): return .channelRequest(channels)
        case .notification(let call):
            if let calls = takeNotifications(with: call, into: &buffer) { return .notifications(calls) }
            return .notification(call, isWritten: notify(call.value, of: call.handle, into: &buffer))
        case .indication(let call): return .indication(call)
        case .answer(let answer): return .server(self.answer(answer, into: &buffer))
        }
    }

    // MARK: Procedures

    /// The number of procedures whose callers are suspended.
    var suspendedProcedureCount: Int {
        let isSuspended = { (call: ProcedureCall) in if case .task = call.caller { true } else { false } }
        return procedureCalls.count(where: isSuspended)
            + lanes.client.count { if case .procedure(let call) = $0.work { isSuspended(call) } else { false } }
    }

    /// Gives a procedure to the client, which puts out its end.
    ///
    /// - Returns: the enhanced bearer whose client has the procedure; nil if it is on the fixed channel.
    mutating func start(_ call: borrowing ProcedureCall) -> EnhancedBearer? {
        if let bearer = enhanced?.assign(call, fixedLoad: procedureCalls.count) {
            bearer.start(call)
            return bearer
        }
        startOnFixedChannel(call)
        return nil
    }

    /// Gives a procedure to the client of the fixed channel, which puts out its end.
    mutating func startOnFixedChannel(_ call: borrowing ProcedureCall) {
        procedureCalls.append(copy call)
        client.perform(call.run)
    }

    /// Writes the next request of the client, if one may be sent.
    ///
    /// - Returns: the opcode of the request.
    mutating func nextRequest(isGateOpen: Bool, into buffer: inout PacketBuffer) -> ATTOpcode? {
        guard canStartRequest(isGateOpen: isGateOpen) else { return nil }
        return client.nextRequest(mtu: bearer.mtu, into: &buffer)
    }

    func canStartRequest(isGateOpen: Bool) -> Bool {
        bearer.awaitedRequest == nil && !isDelivering && !bearer.isDead && isGateOpen
    }

    /// To be called before a request is sent. Starts the transaction timer.
    ///
    /// - Returns: false if the bearer takes no request. The client is closed then; the caller takes its effects.
    mutating func requestWillBeSent(_ opcode: ATTOpcode, at now: Instant) -> Bool {
        do throws(BearerError) {
            try bearer.requestWillBeSent(opcode, at: now)
            return true
        } catch {
            closeClient()
            return false
        }
    }

    // MARK: Writes and values

    /// Writes a Write Command. A signed write is only checked.
    ///
    /// - Returns: the signature with which the caller writes the command; nil if it was written.
    /// - Throws: ``HostError/invalidArgument(_:)`` if the value is too long. A command is sent whole or not at all.
    mutating func write(
        _ call: borrowing WriteCall,
        into buffer: inout PacketBuffer
    ) throws(HostError) -> WriteCall.Signature? {
        // The link may have been encrypted since the call.
        if let signature = call.signature, !session.security.isEncrypted {
            try checkLength(of: call.value, isSigned: true)
            return signature
        }
        try checkLength(of: call.value, isSigned: false)
        enhanced?.commandWasSent(isRequestInFlight: bearer.awaitedRequest != nil)
        WriteCommand(handle: call.handle, value: call.value.rawSpan).encode(into: &buffer)
        return nil
    }

    /// Maximum length of the value of a Write Command, in bytes (Vol 3, Part F, 3.2.9 and 3.4.5.3).
    var longestCommandValue: Int { min(bearer.mtu - 3, maximumAttributeValueLength) }

    @inline(__always)
    func checkLength(of value: [UInt8], isSigned: Bool) throws(HostError) {
        let room = bearer.mtu - 3 - (isSigned ? SignedWriteCommand.signatureLength : 0)
        let limit = min(room, maximumAttributeValueLength)
        guard value.count <= limit else {
            let kind = isSigned ? "signed write" : "write without response"
            throw .invalidArgument("a \(kind) carries at most \(limit) bytes on this link, not \(value.count)")
        }
    }

    /// Writes a notification, if the peer is subscribed.
    ///
    /// - Returns: whether it is.
    func notify(_ value: [UInt8], of handle: AttributeHandle, into buffer: inout PacketBuffer) -> Bool {
        guard session.sendable(of: handle).contains(.notification) else { return false }
        session.notify(value.rawSpan, of: handle, into: &buffer)
        return true
    }

    /// Whether a value waits for the client, or an indication for its confirmation.
    var hasUnsentValue: Bool { lanes.valueCount > 0 || indicationInFlight != nil }

    /// Whether the client has not taken the value of a call to several clients.
    func hasUnsentValue(of broadcast: Broadcast) -> Bool {
        if case .broadcast(let unconfirmed)? = indicationInFlight?.caller, unconfirmed === broadcast { return true }
        return lanes.hasValue(of: broadcast)
    }

    enum Indication {
        /// Send the PDU; its confirmation ends the call.
        case written
        /// End the call: the peer has unsubscribed.
        case unsubscribed
        /// End the call in an error: the bearer is dead.
        case refused
    }

    /// Writes an indication, if the peer is subscribed, and starts the transaction timer.
    mutating func indicate(_ call: ValueCall, at now: Instant, into buffer: inout PacketBuffer) -> Indication {
        guard session.sendable(of: call.handle).contains(.indication) else { return .unsubscribed }
        do throws(BearerError) {
            try bearer.indicationWillBeSent(at: now)
        } catch {
            return .refused
        }
        session.indicate(call.value.rawSpan, of: call.handle, into: &buffer)
        indicationInFlight = call
        return .written
    }

    // MARK: Verification of the peer

    /// Whether the peer's identity is to be verified for calls that wait. True once, until ``verificationEnded()``.
    mutating func needsVerification(isGateOpen: Bool) -> Bool {
        guard !lanes.client.isEmpty, !isGateOpen, !isVerifying else { return false }
        isVerifying = true
        return true
    }

    /// To be called when the peer's identity is verified, or could not be.
    ///
    /// - Returns: the calls that end, the oldest first: none if the identity is verified.
    mutating func verificationEnded(isVerified: Bool) -> Deque<OutboundLanes.Item> {
        isVerifying = false
        return isVerified ? [] : lanes.removeAllOfClient()
    }

    // MARK: Cancelling

    /// Cancels a procedure. If it has left its lane, the client puts out its end.
    ///
    /// - Returns: the call, if it was in its lane.
    mutating func cancel(_ run: ProcedureRun) -> ProcedureCall? {
        if let call = lanes.remove(run) { return call }
        client.cancel(run)
        return nil
    }

    /// Ends the calls that end because the server has changed attributes in a range. The client puts out the ends of
    /// procedures that have left their lane.
    ///
    /// - Returns: the calls in the lane, which the caller ends, the oldest first.
    mutating func endCalls(changedIn range: HandleRange) -> Deque<OutboundLanes.Item> {
        for call in procedureCalls where call.ends(onChangeIn: range) {
            client.cancel(call.run, with: .attributesChanged)
        }
        return lanes.removeCalls(endingOnChangeIn: range)
    }

    /// Removes a call whose task was cancelled.
    ///
    /// - Returns: whether it was in a lane: others may be sent now.
    mutating func remove(_ call: CallToken) -> Bool {
        drains.removeAll { $0.call == call }
        return lanes.remove(call)
    }

    /// Removes the values in a range of handles that are not sent yet, because their service was removed. Another
    /// service may get the handles.
    ///
    /// - Returns: the calls, which end.
    mutating func removeValues(in range: ClosedRange<AttributeHandle>) -> [ValueCall] {
        lanes.removeValues(in: range)
    }

    /// Removes the request for a channel that is given up.
    ///
    /// - Returns: whether it was in a lane: others may be sent now.
    mutating func removeRequest(for channel: ChannelIdentifier) -> Bool {
        lanes.removeRequest(for: channel)
    }

    // MARK: Draining

    /// Appends a call that waits until all calls before it are sent.
    ///
    /// - Parameters:
    ///   - includingIndications: whether it also waits for indications that cannot be sent before earlier ones are
    ///     confirmed.
    ///   - unsentPackets: the number of the link's packets that the controller has not sent.
    mutating func drain(_ call: CallToken, includingIndications: Bool = false, unsentPackets: Int? = nil) {
        var drain = Drain(sequence: makeSequence(), call: call, includesIndications: includingIndications)
        if !hasUnsentValue(before: drain) { drain.packetCount = unsentPackets }
        drains.append(drain)
    }

    private func hasUnsentValue(before drain: Drain) -> Bool {
        lanes.hasUnsentValue(before: drain.sequence, includingIndications: drain.includesIndications)
    }

    /// Counts packets that the controller has sent, and removes the calls that wait no longer.
    ///
    /// A call waits for as many packets as there are before it. So if the controller's report of one of these is lost,
    /// the reports of later packets end the wait.
    ///
    /// - Parameter unsentPackets: the number of the link's packets that the controller has not sent.
    mutating func packetsSent(_ count: Int, unsentPackets: Int) -> [CallToken] {
        for index in drains.indices {
            if let packetCount = drains[index].packetCount {
                drains[index].packetCount = packetCount - count
            } else if !hasUnsentValue(before: drains[index]) {
                drains[index].packetCount = unsentPackets
            }
        }
        let ended = drains.filter { $0.packetCount.map { $0 <= 0 } ?? false }.map(\.call)
        drains.removeAll { ended.contains($0.call) }
        return ended
    }

    /// Removes the calls that wait no longer, when the controller has sent all frames of the link.
    mutating func takeDrained() -> [CallToken] {
        let drained = drains.filter { !hasUnsentValue(before: $0) }.map(\.call)
        drains.removeAll { drained.contains($0.call) }
        return drained
    }
}
