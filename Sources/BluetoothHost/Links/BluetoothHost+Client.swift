import ATT
import BluetoothTypes
import ByteCoding
import GATT
import HCI

// The client role: procedures, writes without response, and the values that servers send.
extension BluetoothHost {
    /// Runs a client procedure. Cancelling the task gives it up.
    package nonisolated(nonsending) func perform<P: ClientProcedure>(
        _ procedure: P,
        on identifier: LinkIdentifier
    ) async throws(HostError) -> P.Output {
        let run = TypedProcedureRun(procedure)
        let elevationFailure = try await finish(run, on: identifier)
        do throws(ClientError) {
            return try run.output()
        } catch {
            throw await hostError(error, on: identifier, elevationFailure)
        }
    }

    /// Runs a procedure to its end. Cancelling the task gives it up.
    ///
    /// - Returns: why the link could not be made as secure as the server requires, if the procedure failed for it.
    package nonisolated(nonsending) func finish(
        _ run: ProcedureRun,
        on identifier: LinkIdentifier
    ) async throws(HostError) -> HostError? {
        // The loop has it until it has ended, and its caller afterwards.
        nonisolated(unsafe) let run = run
        let outcome = await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<CallOutcome, Never>) in
                // The loop may be cancelling the run already.
                guard !Task.isCancelled else { return continuation.resume(returning: .failure(.cancelled)) }
                call(.submitProcedure, ProcedureCall(run: run, link: identifier, caller: .task(continuation)))
            }
        } onCancel: {
            spawn { $0.cancel(run, on: identifier) }
        }
        switch outcome {
        case .ended(let elevationFailure): return elevationFailure
        case .failure(let error): throw error
        }
    }

    /// Queues a client procedure. `completion` is called on the loop.
    package func begin<P: ClientProcedure>(
        _ procedure: P,
        on identifier: LinkIdentifier,
        completion: @escaping @Sendable (Result<P.Output, HostError>) -> Void
    ) {
        let run = TypedProcedureRun(procedure)
        let call = ProcedureCall(
            run: run,
            link: identifier,
            caller: .callback { [weak self] outcome in
                switch outcome {
                case .failure(let error): completion(.failure(error))
                case .ended(let elevationFailure):
                    do throws(ClientError) {
                        completion(.success(try run.output()))
                    } catch {
                        guard let self else { return completion(.failure(.closed)) }
                        let error = error
                        assumeIsolated { host in
                            completion(.failure(host.hostError(error, on: identifier, elevationFailure)))
                        }
                    }
                }
            }
        )
        submit(call)
    }

    /// Sends the next request of the link's client, if none is in flight.
    func pumpClient(of link: Link) {
        guard canStartProcedure(on: link) else { return }
        var buffer = sender.takeBuffer()
        let opcode = link.client.nextRequest(mtu: link.bearer.mtu, into: &buffer)
        advanceClient(of: link, opcode, consume buffer)
    }

    private func canStartProcedure(on link: Link) -> Bool {
        link.bearer.awaitedRequest == nil && !link.isDeliveringOutputs && !link.bearer.isDead
            && !link.protection.awaitsProof
    }

    /// Delivers what the client of a link has put out, then sends the request that it has written, or starts the next
    /// procedure. To be called after each input that may write a request.
    ///
    /// A procedure that an app's closure submits starts only after all outputs are delivered. So it does not overtake the
    /// procedures that wait already, and the packets that the closure sends go first.
    func advanceClient(of link: Link, _ opcode: ATT.Opcode?, _ buffer: consuming PacketBuffer) {
        var opcode = opcode
        while takeOutputs(ofClientOf: link), opcode == nil, canStartProcedure(on: link) {
            opcode = link.client.nextRequest(mtu: link.bearer.mtu, into: &buffer)
        }
        sendRequest(opcode, consume buffer, on: link)
    }

    /// Delivers what the client of a link has put out. To be called after each input of the client, and then
    /// ``pumpClient(of:)``.
    ///
    /// An app's closure may call the host, which takes further outputs then. So the outputs are delivered in their order.
    ///
    /// - Returns: whether there was an output.
    @discardableResult
    func takeOutputs(ofClientOf link: Link) -> Bool {
        guard var output = link.client.takeOutput() else { return false }
        let isNested = link.isDeliveringOutputs
        link.isDeliveringOutputs = true
        while true {
            deliver(output, of: link)
            guard let next = link.client.takeOutput() else { break }
            output = next
        }
        link.isDeliveringOutputs = isNested
        return true
    }

    private func deliver(_ output: ClientOutput, of link: Link) {
        switch output {
        case .ended(let run): link.takeCall(of: run)?.end(.ended(elevationFailure: link.elevationFailure))
        case .cacheChanged(let cache): keepCache(cache, of: link)
        case .securityRequired(let error):
            if !elevateSecurity(of: link, after: error) { declineElevation(of: link) }
        }
    }

    private func declineElevation(of link: Link) {
        var buffer = sender.takeBuffer()
        let opcode = link.client.elevationDeclined(mtu: link.bearer.mtu, into: &buffer)
        sendRequest(opcode, consume buffer, on: link)
    }

    private func sendRequest(_ opcode: ATT.Opcode?, _ buffer: consuming PacketBuffer, on link: Link) {
        guard let opcode else { return sender.recycle(buffer) }
        do throws(BearerError) {
            try link.bearer.requestWillBeSent(opcode, at: loop.now)
            send(consume buffer, .request, on: .attribute, of: link)
            if let deadline = link.bearer.deadline { armTimer(of: link, by: deadline) }
        } catch {
            sender.recycle(buffer)
            link.client.close()
            takeOutputs(ofClientOf: link)
        }
    }

    /// Sends a Write Command as soon as the link's outbound queue has room (Vol 3, Part G, 4.9.1). Cancelling the task ends
    /// the wait. On other threads than the loop's, the write can be submitted; the call then returns before it is sent.
    package nonisolated(nonsending) func writeWithoutResponse(
        _ value: [UInt8],
        to handle: AttributeHandle,
        on identifier: LinkIdentifier
    ) async throws(HostError) {
        var write = WriteCall(value: value, handle: handle, link: identifier, caller: .submission)
        if isOnLoop {
            if let result = LoopQuery.sendAtOnce(self, write) { return try result.get() }
            try await waitToSend(write)
        } else if !submissions.submit(write, { loop.execute { [self] in call(.sendSubmissions, ()) } }) {
            write.opensFastPath = true
            try await waitToSend(write)
        }
    }

    /// Queues a Write Command. `completion` is called on the loop when it has left its lane.
    package func beginWriteWithoutResponse(
        _ value: [UInt8],
        to handle: AttributeHandle,
        on identifier: LinkIdentifier,
        completion: @escaping @Sendable (Result<Void, HostError>) -> Void
    ) {
        submit(WriteCall(value: value, handle: handle, link: identifier, caller: .callback(completion)))
    }

    /// Sends a write without response, waiting behind the calls before it and for room.
    nonisolated(nonsending) func waitToSend(_ write: WriteCall) async throws(HostError) {
        try await wait { host, call in
            var write = write
            write.caller = .task(call)
            host.submit(write)
        }
    }

    /// Writes a command to the link's outbound queue.
    func write(_ call: borrowing WriteCall, on link: Link) throws(HostError) {
        // The link may have been encrypted since the call.
        if let signature = call.signature, !link.session.security.isEncrypted {
            try checkLength(of: call.value, isSigned: true, on: link)
            var buffer = sender.takeBuffer()
            sign(call.value, to: call.handle, signature, into: &buffer)
            send(consume buffer, .value, on: .attribute, of: link)
        } else {
            try checkLength(of: call.value, isSigned: false, on: link)
            var buffer = sender.takeBuffer()
            WriteCommand(handle: call.handle, value: call.value.rawSpan).encode(into: &buffer)
            send(consume buffer, .value, on: .attribute, of: link)
        }
    }

    /// A command is sent whole or not at all.
    func checkLength(of value: [UInt8], isSigned: Bool, on link: Link) throws(HostError) {
        let limit = link.bearer.mtu - 3 - (isSigned ? SignedWriteCommand.signatureLength : 0)
        guard value.count <= limit else {
            let kind = isSigned ? "signed write" : "write without response"
            throw .invalidArgument("a \(kind) carries at most \(limit) bytes on this link, not \(value.count)")
        }
    }

    // MARK: Notifications and indications from servers

    /// Calls `deliver` on the loop with each value that the server sends of an attribute, until
    /// ``removeSubscriber(_:of:on:)`` or the link's end.
    package func addSubscriber(
        of handle: AttributeHandle,
        on identifier: LinkIdentifier,
        deliver: @escaping @Sendable (HandleValue) -> Void
    ) throws(HostError) -> UInt64 {
        let link = try link(identifier)
        let subscriber = makeIdentifier()
        link.subscribers[handle, default: [:]][subscriber] = deliver
        return subscriber
    }

    package func removeSubscriber(_ subscriber: UInt64, of handle: AttributeHandle, on identifier: LinkIdentifier) {
        guard let link = links[identifier] else { return }
        link.subscribers[handle]?[subscriber] = nil
        if link.subscribers[handle]?.isEmpty == true { link.subscribers[handle] = nil }
    }

    func receiveNotification(_ opcode: ATT.Opcode, _ pdu: RawSpan, on link: Link) {
        do throws(PacketDecodingError) {
            if opcode == .multipleHandleValueNotification {
                let notification = try MultipleHandleValueNotification(decoding: pdu)
                var entries = notification.entries
                while let entry = entries.next() {
                    deliver(entry.value, of: entry.handle, isIndication: false, on: link)
                }
            } else {
                let notification = try HandleValueNotification(decoding: pdu)
                deliver(notification.value, of: notification.handle, isIndication: false, on: link)
            }
        } catch {
            countMalformed("notification", error)
        }
    }

    /// Delivers an indication and confirms it (Vol 3, Part G, 4.11). A malformed one is dropped and counted.
    func receiveIndication(_ pdu: RawSpan, on link: Link) {
        link.bearer.confirmationWillBeSent()
        do throws(PacketDecodingError) {
            let indication = try HandleValueIndication(decoding: pdu)
            deliver(indication.value, of: indication.handle, isIndication: true, on: link)
            link.client.indicationReceived(from: indication.handle)
            takeOutputs(ofClientOf: link)
        } catch {
            return countMalformed("indication", error)
        }
        var buffer = sender.takeBuffer()
        HandleValueConfirmation().encode(into: &buffer)
        send(consume buffer, .confirmation, on: .attribute, of: link)
        pumpClient(of: link)
    }

    private func deliver(_ value: RawSpan, of handle: AttributeHandle, isIndication: Bool, on link: Link) {
        guard acceptsValues(on: link), let subscribers = link.subscribers[handle] else { return }
        let value = HandleValue(
            handle: handle,
            value: [UInt8](copying: value),
            isIndication: isIndication,
            time: loop.now
        )
        for deliver in subscribers.values { deliver(value) }
    }
}

extension LoopQuery<WriteCall, Result<Void, HostError>?> {
    fileprivate static let sendAtOnce = LoopQuery { $0.sendAtOnce($1) }
}

extension LoopFunction<ProcedureCall> {
    fileprivate static let submitProcedure = LoopFunction { $0.submit($1) }
}
