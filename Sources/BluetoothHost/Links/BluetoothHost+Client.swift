import ATT
import BluetoothTypes
import ByteCoding
import GATT
import HCI

// What the host asks of servers, and what these send by themselves.
extension BluetoothHost {
    /// Runs a client's procedure; cancelling the task gives it up.
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

    /// Runs a procedure to its end; cancelling the task gives it up.
    ///
    /// - Returns: where the procedure has failed because its link could not be made as secure as the server wants it, why.
    package nonisolated(nonsending) func finish(
        _ run: ProcedureRun,
        on identifier: LinkIdentifier
    ) async throws(HostError) -> HostError? {
        // The loop has it until it has ended, and its caller afterwards.
        nonisolated(unsafe) let run = run
        while true {
            let ending = await withTaskCancellationHandler {
                await withUnsafeContinuation { (continuation: UnsafeContinuation<Ending, Never>) in
                    // The loop may be telling the run so already.
                    guard !Task.isCancelled else { return continuation.resume(returning: .failure(.cancelled)) }
                    call(.beginProcedure, ProcedureCall(run: run, link: identifier, continuation: continuation))
                }
            } onCancel: {
                spawn { $0.links[identifier]?.client.cancel(run) }
            }
            if case .over(let elevationFailure) = ending { return elevationFailure }
            try await makeReady(for: ending, on: identifier)
        }
    }

    fileprivate func begin(_ call: borrowing ProcedureCall) {
        let continuation = call.continuation
        // It may have been cancelled on its way here.
        guard !call.run.hasEnded else { return continuation.resume(returning: .over()) }
        guard let link = links[call.link], link.waitingPosts > 0 else { return start(call) }
        // What was posted before is sent before. Who gives the run up meanwhile need not wait for that.
        call.run.whenEnded { continuation.resume(returning: .over()) }
        let call = copy call
        link.addRoomWaiter(isPosted: false) { host in
            guard !call.run.hasEnded else { return }
            call.run.whenEnded {}
            host.start(call)
        }
    }

    private func start(_ call: borrowing ProcedureCall) {
        let (run, continuation) = (call.run, call.continuation)
        do throws(HostError) {
            let link = try link(call.link)
            guard !link.protection.awaitsProof else { return continuation.resume(returning: .awaitsProof) }
            // Each run ends once: with its client at the latest, at once where that is closed already.
            run.whenEnded { continuation.resume(returning: .over(elevationFailure: link.elevationFailure)) }
            link.client.perform(run)
            pumpClient(of: link)
            sendPending()
        } catch {
            continuation.resume(returning: .failure(error))
        }
    }

    func pumpClient(of link: Link) {
        guard link.bearer.awaitedRequest == nil, !link.bearer.isDead, !link.protection.awaitsProof else { return }
        var buffer = pool.take()
        let opcode = link.client.nextRequest(mtu: link.bearer.mtu, into: &buffer)
        sendRequest(opcode, consume buffer, on: link)
    }

    func sendRequest(_ opcode: ATT.Opcode?, _ buffer: consuming PacketBuffer, on link: Link) {
        guard let opcode else { return pool.giveBack(buffer) }
        do throws(BearerError) {
            try link.bearer.requestWillBeSent(opcode, at: loop.now)
            send(consume buffer, on: .attribute, of: link)
            if let deadline = link.bearer.deadline { armTimer(of: link, by: deadline) }
        } catch {
            pool.giveBack(buffer)
            link.client.close()
        }
    }

    /// Writes without a response, once there is room (Vol 3, Part G, 4.9.1). From other threads than the loop's, some writes
    /// may be posted, and the call returns before there is.
    package nonisolated(nonsending) func writeWithoutResponse(
        _ value: [UInt8],
        to handle: AttributeHandle,
        on identifier: LinkIdentifier
    ) async throws(HostError) {
        try await write(on: identifier, postableLength: value.count) { host, link throws(HostError) in
            try host.checkLength(of: value, isSigned: false, on: link)
            var buffer = host.pool.take()
            WriteCommand(handle: handle, value: value.rawSpan).encode(into: &buffer)
            host.send(consume buffer, on: .attribute, of: link)
        }
    }

    /// What is written without a response is sent whole or not at all.
    func checkLength(of value: [UInt8], isSigned: Bool, on link: Link) throws(HostError) {
        let limit = link.bearer.mtu - 3 - (isSigned ? SignedWriteCommand.signatureLength : 0)
        guard value.count <= limit else {
            let kind = isSigned ? "signed write" : "write without response"
            throw .invalidArgument("a \(kind) carries at most \(limit) octets on this link, not \(value.count)")
        }
    }

    /// Has a frame written on a link as soon as there is room.
    ///
    /// - Parameters:
    ///   - awaitsProof: whether its peer, where it is bonded, is first to prove who it is.
    ///   - postableLength: the length of the value, where the write may be posted.
    nonisolated(nonsending) func write(
        on identifier: LinkIdentifier,
        awaitsProof: Bool = true,
        postableLength: Int? = nil,
        _ frame: @escaping FrameWriter
    ) async throws(HostError) {
        var write = WriteCall(frame: frame, link: identifier, awaitsProof: awaitsProof, caller: .postbox)
        let isOnLoop = isOnLoop
        if !isOnLoop, let postableLength, post(write, length: postableLength) { return }
        while true {
            let ending = await withUnsafeContinuation { (continuation: UnsafeContinuation<Ending, Never>) in
                write.caller = .waiting(continuation, mayPostNext: !isOnLoop && postableLength != nil)
                call(.beginWriting, write)
            }
            if case .over = ending { return }
            try await makeReady(for: ending, on: identifier)
        }
    }

    func begin(_ call: borrowing WriteCall) {
        guard let link = links[call.link] else { return write(call) }
        if call.awaitsProof, link.protection.awaitsProof {
            awaitProof(of: link, copy call)
        } else if hasRoom(on: link) {
            write(call)
            sendPending()
        } else {
            let call = copy call
            link.addRoomWaiter(isPosted: call.isPosted) { $0.write(call) }
        }
    }

    private func awaitProof(of link: Link, _ call: WriteCall) {
        switch call.caller {
        case .waiting(let continuation, _): continuation.resume(returning: .awaitsProof)
        case .postbox:
            // Whoever writes next learns that the link is not what it was.
            postbox.shutGate(to: call.link)
            whenProven(link) { [weak self] result in
                self?.assumeIsolated { host in
                    if case .success = result { host.begin(call) } else { host.postbox.wrotePost(to: call.link) }
                }
            }
            sendPending()
        }
    }

    private func write(_ call: borrowing WriteCall) {
        do throws(HostError) {
            let link = try link(call.link)
            try call.frame(self, link)
            switch call.caller {
            case .waiting(let continuation, let mayPostNext):
                if mayPostNext { postbox.openGate(to: call.link, greatestLength: link.bearer.mtu - 3) }
                continuation.resume(returning: .over())
            case .postbox: postbox.wrotePost(to: call.link)
            }
        } catch {
            switch call.caller {
            case .waiting(let continuation, _): continuation.resume(returning: .failure(error))
            case .postbox:
                postbox.wrotePost(to: call.link)
                postbox.shutGate(to: call.link)
            }
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

    /// An indication is confirmed once it has been delivered (Vol 3, Part G, 4.11).
    func receiveIndication(_ pdu: RawSpan, on link: Link) {
        if let indication = try? HandleValueIndication(decoding: pdu) {
            deliver(indication.value, of: indication.handle, isIndication: true, on: link)
            link.client.indicationReceived(from: indication.handle)
        }
        link.bearer.confirmationWillBeSent()
        var buffer = pool.take()
        HandleValueConfirmation().encode(into: &buffer)
        send(consume buffer, on: .attribute, of: link)
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

/// Writes a frame on a link, if it can be.
typealias FrameWriter = @Sendable (isolated BluetoothHost, Link) throws(HostError) -> Void

private struct ProcedureCall: @unchecked Sendable {
    /// Its caller leaves it to the loop until the continuation is resumed.
    let run: ProcedureRun
    let link: LinkIdentifier
    let continuation: UnsafeContinuation<Ending, Never>
}

/// A frame that an app wants to be written.
struct WriteCall: Sendable {
    enum Caller: Sendable {
        case waiting(UnsafeContinuation<Ending, Never>, mayPostNext: Bool)
        /// It was posted: nobody waits for it.
        case postbox
    }

    let frame: FrameWriter
    let link: LinkIdentifier
    let awaitsProof: Bool
    var caller: Caller

    var isPosted: Bool {
        if case .postbox = caller { true } else { false }
    }
}

extension LoopFunction<ProcedureCall> {
    fileprivate static let beginProcedure = LoopFunction { $0.begin($1) }
}

extension LoopFunction<WriteCall> {
    fileprivate static let beginWriting = LoopFunction { $0.begin($1) }
}
