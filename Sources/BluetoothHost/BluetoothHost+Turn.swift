import BLEGATT
import BLEHCITransport
import BluetoothTypes
import DequeModule

/// The pending work of a host's current turn.
///
/// ## Overview
///
/// An input is a packet, a call of an app, a timer, the answer of an app or the result of the store. Each input ends
/// with ``BluetoothHost/endInput()``, which runs one turn. In a turn, the host sends the frames that wait, then calls
/// the closures of apps one at a time, and sends the frames that wait after each. A closure is queued as a ``Delivery``
/// where its cause is found, and is called in the turn. So it finds all parts of the host in a consistent state.
///
/// A frame waits for the turn if another frame waits before it, if it is longer than a packet, or if the controller has
/// no free buffer for its link. K-frames of channels always wait. Any other frame is sent at once
/// (``LinkSender/beginAtOnce(_:on:of:)``), so before the commands and closures that follow from the same input.
///
/// A closure may call the host, and gets the result of such a call at once. Deliveries that follow from the call join
/// the queue of the running turn.
///
/// ## Order
///
/// Deliveries are made in the order of their causes. A suspended call is resumed at once if no deliveries wait.
/// Otherwise it is resumed after them, because its task may run on another thread.
///
/// While a PDU of the Attribute Protocol is received, the deliveries that it causes are made at once if none wait. At
/// that point the GATT client and server have returned. So packets that the closure sends leave before the packet that
/// the host sends next: a response, a confirmation or the next request.
struct Turn {
    enum Phase: UInt8 {
        /// No turn is running.
        case idle
        /// A PDU of the Attribute Protocol is being received.
        case receiving
        /// Frames are being sent, or a closure of an app is running.
        case performing
    }

    var phase = Phase.idle
    /// The number of the host's tasks that have started and not ended; counted in debug builds only.
    var taskCount = 0
    /// The number of inputs that have ended; counted in debug builds only.
    var inputCount = 0
    #if DEBUG
        /// Whether the transport is taking a packet of a link. It must not call back before it returns
        /// (`Transport.send(_:)`).
        var isSending = false
    #endif
    let deliveries = DeliveryQueue()

    /// Whether a delivery can be made at once, provided that no engine is in the middle of a call.
    var isIdle: Bool { phase == .idle && deliveries.isEmpty }

    /// Whether a delivery can be made at once while a PDU of the Attribute Protocol is being received.
    var canDeliverWhileReceiving: Bool { phase == .receiving && deliveries.isEmpty }
}

/// The deliveries that wait.
///
/// The queue is an object, and counts its deliveries itself. So the check whether it is empty, which each packet needs,
/// is only a load, and the compiler needs no check for overlapping accesses to the turn.
final class DeliveryQueue {
    private var deliveries = Deque<Delivery>()
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    func append(_ delivery: consuming Delivery) {
        count += 1
        deliveries.append(delivery)
    }

    func popFirst() -> Delivery? {
        guard let delivery = deliveries.popFirst() else { return nil }
        count -= 1
        return delivery
    }
}

/// One closure of an app that is to be called, or one suspended call that is to be resumed.
///
/// Observers are named by their identifiers. So an observer that was removed before its delivery is not called.
enum Delivery {
    // MARK: Observers

    indirect case hostEvent(UInt64, HostEvent)
    indirect case serverEvent(UInt64, ServerRoleEvent)
    indirect case securityEvent(UInt64, SecurityEvent)
    case linkEnd(@Sendable (DisconnectionReason) -> Void, DisconnectionReason)
    case value(LinkIdentifier, AttributeHandle, subscriber: UInt64, HandleValue)
    indirect case scanEvent(ScanIdentifier, ScanEvent)
    indirect case synchronizationEvent(SynchronizationIdentifier, SynchronizationEvent)
    case synchronizationEnd(@Sendable (SynchronizationEvent) -> Void, HostError)
    indirect case subeventEvent(AdvertisementIdentifier, UInt64, SubeventEvent)
    case subeventEnd(@Sendable (SubeventEvent) -> Void)
    case receptionReady(SyncTransferReceptionIdentifier)
    indirect case transferred(SyncTransferReceptionIdentifier, ReceivedSyncTransfer)
    indirect case transferFailed(SyncTransferReceptionIdentifier, FailedSyncTransfer)
    case receptionEnd(SyncTransferObserver, HostError)
    indirect case linkEvent(LinkObservation, LinkEvent)
    case observationEnd(LinkObserver, HostError)
    case scanEnd(@Sendable (ScanEvent) -> Void, HostError)
    indirect case soundingEvent(UInt64, ChannelSoundingSessionEvent)
    /// The last delivery of a host that was closed: all observers are removed.
    case hostEnd

    // MARK: Questions

    case access(AccessHandler, LinkIdentifier, AccessRequest)
    indirect case authorization(LinkIdentifier, AuthorizationRequest)
    indirect case inquiry(PairingInquiry, number: UInt64)
    case withdrawal(@Sendable () -> Void)

    // MARK: Channels

    indirect case channelOpened(ObserverToken, OpenedChannel)
    indirect case channelAccepted(ObserverToken, OpenedChannel)
    case channelEvent(ObserverToken, HostChannelEvent)
    case channelFailure(ChannelCompletion, HostError)

    // MARK: Outcomes of calls

    case connection(@Sendable (Result<LinkIdentifier, HostError>) -> Void, Result<LinkIdentifier, HostError>)
    case callback(@Sendable (Result<Void, HostError>) -> Void, Result<Void, HostError>)
    case call(CallToken, Result<Void, HostError>)
    case procedure(ProcedureCall.Caller, CallOutcome)
    case action(() -> Void)
    /// A closure of an app that is no longer used. It is released by the delivery, because code of the app may run
    /// then.
    case release(Any)

    /// Whether the delivery usually is an element of a sequence, whose readers are woken together.
    var isElement: Bool {
        switch self {
        case .value, .serverEvent, .scanEvent: true
        default: false
        }
    }
}

extension BluetoothHost {
    /// Ends an input: sends the frames that wait, then makes the waiting deliveries one at a time. Does nothing if a
    /// turn is running, because that turn handles them.
    ///
    /// Call this only when no engine is in the middle of a call.
    func endInput() {
        #if DEBUG
            turn.inputCount += 1
        #endif
        guard turn.phase == .idle else { return }
        turn.phase = .performing
        sendFrames()
        if !turn.deliveries.isEmpty { makeDeliveries() }
        turn.phase = .idle
        watchForStall()
    }

    @inline(never)
    private func makeDeliveries() {
        while let delivery = turn.deliveries.popFirst() {
            perform(delivery)
            sendFrames()
        }
    }

    /// Queues the call of an app's closure in this turn, after those that wait already.
    func deliver(_ delivery: consuming Delivery) {
        turn.deliveries.append(delivery)
    }

    /// Makes a delivery at once while a PDU of the Attribute Protocol is received, if no other delivery waits.
    /// Otherwise queues it.
    ///
    /// Call this only when no engine is in the middle of a call.
    func deliverWhileReceiving(_ delivery: consuming Delivery) {
        guard turn.canDeliverWhileReceiving else { return turn.deliveries.append(delivery) }
        let phase = beginDelivery()
        perform(delivery)
        turn.phase = phase
    }

    /// Starts to receive a PDU of the Attribute Protocol.
    ///
    /// - Returns: the phase to return to.
    func beginReceiving() -> Turn.Phase {
        let before = turn.phase
        if before == .idle { turn.phase = .receiving }
        return before
    }

    /// Starts a delivery at once. Deliveries that the closure causes join the turn.
    ///
    /// - Returns: the phase to return to after the delivery.
    func beginDelivery() -> Turn.Phase {
        let before = turn.phase
        turn.phase = .performing
        return before
    }

    private func perform(_ delivery: consuming Delivery) {
        if readers.areWaiting, !delivery.isElement { readers.wakeAll() }
        switch delivery {
        case .hostEvent(let observer, let event): observers.host[observer]?(event)
        case .serverEvent(let observer, let event): observers.server[observer]?(event)
        case .securityEvent(let observer, let event): observers.security[observer]?(event)
        case .linkEnd(let observer, let reason): observer(reason)
        case .value(let link, let handle, let subscriber, let value):
            links[link]?.att.subscribers[handle].first { $0.identifier == subscriber }?.deliver(value)
        case .scanEvent(let scan, let event): observers.scans[scan]?(event)
        case .scanEnd(let deliver, let error): deliver(.ended(error))
        case .soundingEvent(let session, let event): report(event, of: session)
        case .synchronizationEvent(let identifier, let event): observers.synchronizations[identifier]?(event)
        case .synchronizationEnd(let deliver, let error): deliver(.ended(error))
        case .subeventEvent(let advertisement, let observer, let event):
            observers.subevents[advertisement]?[observer]?(event)
        case .subeventEnd(let observer): observer(.ended)
        case .receptionReady(let reception): _ = observers.receptions[reception]?(.ready)
        case .transferred(let reception, let transfer): report(transfer, to: reception)
        case .transferFailed(let reception, let transfer): _ = observers.receptions[reception]?(.failed(transfer))
        case .receptionEnd(let observer, let error): _ = observer(.ended(error))
        case .linkEvent(let observation, let event): observers.links[observation]?(.success(event))
        case .observationEnd(let observer, let error): observer(.failure(error))
        case .hostEnd: removeObservers()
        case .access(let handler, let link, let request): handler(link, request)
        case .authorization(let link, let request): services.authorizer?(link, request)
        case .inquiry(let inquiry, let number): ask(inquiry, number)
        case .withdrawal(let withdraw): withdraw()
        case .channelOpened(let observer, let opened): completeOpening(opened, for: observer)
        case .channelAccepted(let observer, let opened): accept(opened, for: observer)
        case .channelEvent(let observer, let event): report(event, to: observer)
        case .channelFailure(let completion, let error): _ = completion(.failure(error))
        case .connection(let completion, let result): completion(result)
        case .callback(let callback, let result): callback(result)
        case .call(let call, let result): end(call, result)
        case .procedure(.task(let continuation), let outcome): continuation.resume(returning: outcome)
        case .procedure(.callback(let completion), let outcome), .procedure(.host(let completion), let outcome):
            completion(outcome)
        case .action(let action): action()
        case .release: break
        }
    }

    // MARK: Frames

    /// Sends queued packets to the controller until it has no free buffer.
    private func sendFrames() {
        if isochronous.sender.hasPacket { sendISOPackets() }
        guard sender.hasPacket, let send = port.send else { return }
        while let packet = sender.nextPacket() {
            self.send(packet, by: send)
            guard let slot = sender.sent(packet), let handle = sender.handle(of: slot), let link = links[handle]
            else { continue }
            frameSent(on: link)
        }
    }

    private func send(_ packet: borrowing OutboundPacket, by send: (RawSpan) -> Void) {
        metrics.packetsSent.increment()
        transportWillSend()
        send(packet.bytes)
        transportHasSent()
    }

    // MARK: Checks of the transport

    /// Records that the transport is about to take a packet; in debug builds only.
    @inline(__always)
    func transportWillSend() {
        #if DEBUG
            turn.isSending = true
        #endif
    }

    /// Records that the transport has taken a packet; in debug builds only.
    @inline(__always)
    func transportHasSent() {
        #if DEBUG
            turn.isSending = false
        #endif
    }

    /// Stops the program if the transport calls back before its `send` has returned; in debug builds only. The host may
    /// be in the middle of a call of an engine then.
    @inline(__always)
    func checkTransportCallback() {
        #if DEBUG
            precondition(!turn.isSending, "a transport must not call back before `send` returns; call back later")
        #endif
    }

    /// Sends calls and channel frames that waited until the link's outbound queue had room.
    private func frameSent(on link: Link) {
        if !link.att.lanes.isEmpty { pumpLanes(of: link) }
        if sender.takeChannelRoom(link.slot) { pumpChannels(of: link) }
    }

    // MARK: Outcomes of calls

    /// Delivers the outcome of a call.
    func end(_ caller: Caller, _ result: Result<Void, HostError>) {
        switch caller {
        case .task(let call): if turn.deliveries.isEmpty { end(call, result) } else { deliver(.call(call, result)) }
        case .callback(let callback): deliver(.callback(callback, result))
        case .submission: submissions.valueSent()
        case .broadcast(let broadcast):
            if let result = broadcast.clientEnded(result) { end(broadcast.caller, result) }
        case .serviceChanged, .unawaited: break
        }
    }

    /// Delivers the outcome of a call that an engine has ended: success, or this failure.
    func finish(_ call: CallToken, _ failure: HostError?) {
        let result: Result<Void, HostError> = if let failure { .failure(failure) } else { .success(()) }
        if let callback = calls.takeCallback(of: call) {
            deliver(.callback(callback, result))
        } else {
            end(Caller.task(call), result)
        }
    }

    /// Delivers the outcome of a procedure's call.
    func end(_ call: borrowing ProcedureCall, _ outcome: CallOutcome) {
        switch call.caller {
        case .host(let completion): completion(outcome)
        case .task(let continuation) where turn.deliveries.isEmpty:
            readers.wakeAll()
            continuation.resume(returning: outcome)
        case .task, .callback: deliverWhileReceiving(.procedure(call.caller, outcome))
        }
    }
}
