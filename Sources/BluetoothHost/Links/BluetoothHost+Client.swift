import BLEATT
import BLEByteCoding
import BLEGATT
import BLEHCI
import BluetoothTypes

// The client role: procedures, writes without response, and the values that servers send unrequested.
extension BluetoothHost {
    /// Runs a client procedure. Cancelling the task cancels the procedure.
    ///
    /// - Parameters:
    ///   - characteristic: see ``finish(_:on:characteristic:)``.
    ///   - elevatesSecurity: whether the link is made more secure if the server refuses a request because of
    ///     insufficient security. The policy must allow it too.
    package nonisolated(nonsending) func perform<P: ClientProcedure>(
        _ procedure: P,
        on identifier: LinkIdentifier,
        characteristic: AttributeHandle? = nil,
        elevatesSecurity: Bool = true
    ) async throws(HostError) -> P.Output {
        let run = TypedProcedureRun(procedure)
        if !elevatesSecurity { run.elevatesSecurity = false }
        let elevationFailure = try await finish(run, on: identifier, characteristic: characteristic)
        do throws(ClientError) {
            return try run.output()
        } catch {
            throw await hostError(error, on: identifier, elevationFailure)
        }
    }

    /// Runs a procedure to its end. Cancelling the task cancels it.
    ///
    /// - Parameters:
    ///   - characteristic: the value handle of the characteristic that the procedure is for. Procedures and writes of
    ///     one characteristic keep the order of the calls. Procedures of different ones may run at the same time, on
    ///     enhanced bearers. A procedure for no single characteristic runs on the fixed channel.
    ///   - characteristics: the value handles, if the procedure is for several characteristics.
    /// - Returns: why the link could not be made as secure as the server requires, if the procedure failed for that
    ///   reason.
    package nonisolated(nonsending) func finish(
        _ run: ProcedureRun,
        on identifier: LinkIdentifier,
        characteristic: AttributeHandle? = nil,
        characteristics: [AttributeHandle] = []
    ) async throws(HostError) -> HostError? {
        // The loop uses the run until the call has ended, and the caller afterwards.
        nonisolated(unsafe) let run = run
        let outcome = await withTaskCancellationHandler {
            await CallContinuation.wait { continuation in
                // The loop may be cancelling the run already.
                guard !Task.isCancelled else { return continuation.resume(returning: .failure(.cancelled)) }
                unsafe call(
                    .submitProcedure,
                    SuspendedProcedure(
                        run: run,
                        link: identifier,
                        continuation: continuation,
                        characteristic: characteristic,
                        characteristics: characteristics
                    )
                )
            }
        } onCancel: {
            spawn { unsafe $0.cancel(run, on: identifier) }
        }
        if case .failure(let error) = outcome { throw error }
        return outcome.elevationFailure
    }

    /// Queues a client procedure. `completion` is called on the loop.
    ///
    /// - Parameters:
    ///   - characteristic: see ``finish(_:on:characteristic:)``.
    ///   - handles: the handles that the procedure uses, if it ends in an error when the server changes an attribute of
    ///     these; see ``attributesChanged(in:on:)``. Only for a procedure without a `characteristic`.
    package func begin<P: ClientProcedure>(
        _ procedure: P,
        on identifier: LinkIdentifier,
        characteristic: AttributeHandle? = nil,
        endingOnChangeOf handles: HandleRange? = nil,
        completion: @escaping @Sendable (Result<P.Output, HostError>) -> Void
    ) {
        let run = TypedProcedureRun(procedure)
        let call = ProcedureCall(
            run: run,
            link: identifier,
            caller: .callback { [weak self] outcome in
                if case .failure(let error) = outcome { return completion(.failure(error)) }
                do throws(ClientError) {
                    completion(.success(try run.output()))
                } catch {
                    guard let self else { return completion(.failure(.closed)) }
                    let error = error
                    assumeIsolated { host in
                        completion(.failure(host.hostError(error, on: identifier, outcome.elevationFailure)))
                    }
                }
            },
            characteristic: characteristic,
            handles: handles
        )
        submit(call)
    }

    /// Sends the next request of the link's client, unless a request is in flight.
    func pumpClient(of link: Link) {
        guard link.att.canStartRequest(isGateOpen: isGateOpen(on: link)) else { return }
        var buffer = sender.takeBuffer()
        let opcode = link.att.nextRequest(isGateOpen: true, into: &buffer)
        advanceClient(of: link, opcode, consume buffer)
    }

    /// Performs the effects of a link's client, then sends the request that it has written, or starts the next
    /// procedure. Call this after each input that may write a request.
    ///
    /// A procedure that an app's closure submits starts only after all effects are performed. So it does not overtake
    /// procedures that wait already, and packets that the closure sends leave first.
    func advanceClient(of link: Link, _ opcode: ATTOpcode?, _ buffer: consuming PacketBuffer) {
        var opcode = opcode
        while performClientEffects(of: link), opcode == nil {
            opcode = link.att.nextRequest(isGateOpen: isGateOpen(on: link), into: &buffer)
        }
        sendRequest(opcode, consume buffer, on: link)
    }

    func sendRequest(_ opcode: ATTOpcode?, _ buffer: consuming PacketBuffer, on link: Link) {
        guard let opcode else { return sender.recycle(buffer) }
        guard link.att.requestWillBeSent(opcode, at: loop.now) else {
            sender.recycle(buffer)
            performClientEffects(of: link)
            return
        }
        send(consume buffer, .request, on: .attribute, of: link)
        if let deadline = link.att.deadline { armTimer(of: link, by: deadline) }
    }

    /// Sends a Write Command as soon as the link's outbound queue has room (Vol 3, Part G, 4.9.1). Cancelling the task
    /// ends the wait. On other threads than the loop's, the write can be submitted; the call then returns before it is
    /// sent.
    package nonisolated(nonsending) func writeWithoutResponse(
        _ value: [UInt8],
        to handle: AttributeHandle,
        on identifier: LinkIdentifier
    ) async throws(HostError) {
        if try !writeAtOnce(value, to: handle, on: identifier) {
            try await waitToWrite(value, to: handle, on: identifier)
        }
    }

    /// Sends or submits a Write Command, if the caller need not wait.
    ///
    /// The call of an asynchronous function costs more than some of the layers. So callers try this function first.
    ///
    /// - Returns: whether the write was sent or submitted. Otherwise call ``waitToWrite(_:to:on:)``.
    package nonisolated func writeAtOnce(
        _ value: [UInt8],
        to handle: AttributeHandle,
        on identifier: LinkIdentifier
    ) throws(HostError) -> Bool {
        let write = WriteCall(value: value, handle: handle, link: identifier, caller: .submission)
        guard isOnLoop else {
            return submissions.submit(write) { loop.execute { [self] in call(.sendSubmissions, ()) } }
        }
        guard let result = sendOnLoop(write) else { return false }
        try result.get()
        return true
    }

    /// Sends a write without response if no other call waits before it and it can be sent now.
    ///
    /// - Precondition: this is called on the host's loop.
    /// - Returns: nil if the write was not sent and has not failed.
    private nonisolated func sendOnLoop(_ write: borrowing WriteCall) -> Result<Void, HostError>? {
        // The function's isolation is only the promise that it runs on the loop. `assumeIsolated` costs an allocation.
        typealias Function = (BluetoothHost, borrowing WriteCall) -> Result<Void, HostError>?
        let isolated: (isolated BluetoothHost, borrowing WriteCall) -> Result<Void, HostError>? = { $0.sendAtOnce($1) }
        return unsafe unsafeBitCast(isolated, to: Function.self)(self, write)
    }

    /// Sends a Write Command after the calls before it, once the link's outbound queue has room.
    package nonisolated(nonsending) func waitToWrite(
        _ value: [UInt8],
        to handle: AttributeHandle,
        on identifier: LinkIdentifier
    ) async throws(HostError) {
        var write = WriteCall(value: value, handle: handle, link: identifier, caller: .submission)
        write.opensFastPath = !isOnLoop
        try await waitToSend(write)
    }

    /// Queues a Write Command. `completion` is called on the loop when the command has left its lane.
    ///
    /// - Parameter endsOnChange: whether the command is not sent if the server changes the attribute first; see
    ///   ``attributesChanged(in:on:)``.
    package func beginWriteWithoutResponse(
        _ value: [UInt8],
        to handle: AttributeHandle,
        on identifier: LinkIdentifier,
        endsOnChange: Bool = false,
        completion: @escaping @Sendable (Result<Void, HostError>) -> Void
    ) {
        var write = WriteCall(value: value, handle: handle, link: identifier, caller: .callback(completion))
        write.endsOnChange = endsOnChange
        submit(write)
    }

    /// Sends a write without response after the calls before it, once the link's outbound queue has room.
    nonisolated(nonsending) func waitToSend(_ write: WriteCall) async throws(HostError) {
        try await wait(for: .lane(write.link)) { host, call in
            var write = write
            write.caller = .task(call)
            host.submit(write)
        }
    }

    // MARK: Notifications and indications from servers

    /// Calls `deliver` on the loop with each value that the server sends of an attribute, until
    /// ``removeSubscriber(_:of:on:)`` is called or the link ends.
    package func addSubscriber(
        of handle: AttributeHandle,
        on identifier: LinkIdentifier,
        deliver: @escaping @Sendable (HandleValue) -> Void
    ) throws(HostError) -> UInt64 {
        let link = try link(identifier)
        let subscriber = observers.makeIdentifier()
        link.att.subscribers.add(subscriber, of: handle, deliver)
        return subscriber
    }

    /// The number of subscribers to an attribute's values on a link, through all APIs of the host.
    package func subscriberCount(of handle: AttributeHandle, on identifier: LinkIdentifier) -> Int {
        links[identifier]?.att.subscribers[handle].count ?? 0
    }

    /// Delivers the values of a Multiple Handle Value Notification.
    func receiveNotifications(_ pdu: RawSpan, on link: Link) {
        do throws(PacketDecodingError) {
            let notification = try MultipleHandleValueNotification(decoding: pdu)
            var entries = notification.entries
            while let entry = entries.next() {
                deliver(entry.value, of: entry.handle, isIndication: false, on: link)
            }
        } catch {
            countMalformed("notification", error)
        }
    }

    /// Confirms an indication after its value was delivered.
    func confirmIndication(of handle: AttributeHandle, _ buffer: consuming PacketBuffer, on link: Link) {
        link.att.confirm(handle, into: &buffer)
        performClientEffects(of: link)
        send(consume buffer, .confirmation, on: .attribute, of: link)
        // An indication of changed services may have begun a procedure.
        if case .failed(let error) = link.security.published.gate { verificationFailed(error, on: link) }
        pumpClient(of: link)
    }

    func deliver(_ value: RawSpan, of handle: AttributeHandle, isIndication: Bool, on link: Link) {
        guard acceptsValues(on: link) else { return }
        let subscribers = link.att.subscribers[handle]
        guard !subscribers.isEmpty else { return }
        let value = HandleValue(
            handle: handle,
            value: [UInt8](copying: value),
            isIndication: isIndication,
            time: loop.now
        )
        deliver(value, to: subscribers, on: link)
    }
}

extension BluetoothHost {
    /// Delivers a value at once, unless other deliveries wait.
    private func deliver(_ value: HandleValue, to subscribers: [Subscribers.Subscriber], on link: Link) {
        if subscribers.count == 1, turn.canDeliverWhileReceiving {
            let phase = beginDelivery()
            subscribers[0].deliver(value)
            turn.phase = phase
        } else {
            for subscriber in subscribers {
                deliverWhileReceiving(
                    .value(link.identifier, value.handle, subscriber: subscriber.identifier, value)
                )
            }
        }
    }
}

/// A procedure whose caller is suspended. Only the loop uses the run until the call has ended.
private struct SuspendedProcedure: @unchecked Sendable {
    // @unchecked: the caller does not use the run until the call has ended.

    let run: ProcedureRun
    let link: LinkIdentifier
    let continuation: CallContinuation
    let characteristic: AttributeHandle?
    let characteristics: [AttributeHandle]
}

extension LoopFunction<SuspendedProcedure> {
    fileprivate static let submitProcedure = LoopFunction { host, procedure in
        host.submit(
            ProcedureCall(
                run: procedure.run,
                link: procedure.link,
                caller: .task(procedure.continuation),
                characteristic: procedure.characteristic,
                characteristics: procedure.characteristics
            )
        )
    }
}
