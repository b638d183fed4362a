import BLEByteCoding
import BLEHCI
import BluetoothTypes
import DequeModule

/// An event of an isochronous stream.
package enum IsochronousStreamEvent: Sendable {
    case received(IsochronousSDU)
    /// The last event.
    case ended(DisconnectionReason)
}

/// What a stream reports to, and the calls that wait for room in its queue.
struct StreamObserver {
    struct WaitingSDU {
        let call: CallToken
        let bytes: [UInt8]
        let timeStamp: UInt32?
    }

    let deliver: @Sendable (IsochronousStreamEvent) -> Void
    var waiting = Deque<WaitingSDU>()
}

/// Makes the closure for the events of a stream that has opened. It is called on the loop, before the stream receives.
package typealias StreamObserverMaker =
    @Sendable (IsochronousStreamInformation) -> @Sendable (IsochronousStreamEvent) -> Void

/// Called on the loop with the streams of an opening, or with the reason why there are none.
package typealias StreamOpeningCompletion = @Sendable (Result<[IsochronousStreamInformation], HostError>) -> Void

/// The caller of an opening.
struct StreamOpening {
    let observe: StreamObserverMaker
    let completion: StreamOpeningCompletion
}

// Connected isochronous streams (Vol 6, Part B, 4.5.13; Vol 4, Part E, 5.4.5).
extension BluetoothHost {
    // MARK: Opening

    /// Opens one stream to the peer of each link, in one group. All open, or none. If the gate of a link is closed,
    /// this begins the verification of the peer, and the streams wait for it.
    ///
    /// - Returns: the number of the opening, for ``cancelStreamOpening(_:)``.
    package func openStreams(
        to identifiers: [LinkIdentifier],
        _ parameters: ConnectedGroupParameters,
        observe: @escaping StreamObserverMaker,
        completion: @escaping StreamOpeningCompletion
    ) -> UInt64 {
        let number = observers.makeIdentifier()
        do throws(HostError) {
            let information = try requireStreams(asCentral: true)
            for identifier in identifiers {
                let link = try link(identifier)
                guard link.role == .central else {
                    throw .invalidArgument("only the central of a connection can open isochronous streams")
                }
            }
            // A call with wrong arguments encrypts no link.
            _ = try parameters.command(cigID: 0, streamCount: identifiers.count)
            for identifier in identifiers { _ = try linkForOpening(identifier) }
            enableEvents(information.streamEvents)
            let gatedLinks = Set(identifiers.filter { links[$0]?.isGateClosed == true })
            let effects = try isochronous.open(number, to: identifiers, parameters, gatedLinks: gatedLinks)
            observers.streamOpenings[number] = StreamOpening(observe: observe, completion: completion)
            perform(effects)
        } catch {
            deliver(.action { completion(.failure(error)) })
        }
        endInput()
        return number
    }

    /// Gives an opening up. Its completion is called with ``HostError/cancelled``, unless it was called.
    package func cancelStreamOpening(_ number: UInt64) {
        perform(isochronous.cancelOpening(number))
        finishOpening(number, .failure(.cancelled))
        endInput()
    }

    private func requireStreams(asCentral: Bool) throws(HostError) -> ControllerInformation {
        let information = try usableInformation()
        guard configuration.hostFeatures.contains(.connectedIsochronousStreamHostSupport) else {
            throw .notSupported("connected isochronous streams; enable them in the configuration of the adapter")
        }
        guard information.canUseConnectedStreams(asCentral: asCentral) else {
            throw .notSupported(
                "this controller has no connected isochronous streams as \(asCentral ? "central" : "peripheral")"
            )
        }
        return information
    }

    // MARK: Requests

    /// Reports the requests of centrals for streams from now on. Each is to be accepted or rejected.
    ///
    /// - Returns: the observer's number, for ``stopStreamRequests(_:)``.
    package func observeStreamRequests(
        _ deliver: @escaping @Sendable (IsochronousStreamRequest) -> Void
    ) throws(HostError) -> UInt64 {
        let information = try requireStreams(asCentral: false)
        enableEvents(information.streamEvents.union(.cisRequest))
        let number = observers.makeIdentifier()
        observers.streamRequests[number] = deliver
        isochronous.acceptsRequests = true
        endInput()
        return number
    }

    package func stopStreamRequests(_ number: UInt64) {
        let removed = observers.streamRequests.removeValue(forKey: number)
        if observers.streamRequests.isEmpty { perform(isochronous.rejectAll()) }
        endInput()
        withExtendedLifetime(removed) {}
    }

    func streamRequested(_ event: LECISRequest) {
        let link = links[event.aclConnectionHandle]
        let effects = isochronous.requested(
            event,
            on: link?.identifier,
            isUnverified: link?.session.security.isIdentityUnverified == true,
            number: observers.makeIdentifier()
        )
        perform(effects)
    }

    /// Accepts a request.
    package func acceptStream(
        _ number: UInt64,
        observe: @escaping StreamObserverMaker,
        completion: @escaping StreamOpeningCompletion
    ) {
        do throws(HostError) {
            let effects = try isochronous.accept(number)
            observers.streamOpenings[number] = StreamOpening(observe: observe, completion: completion)
            perform(effects)
        } catch {
            deliver(.action { completion(.failure(error)) })
        }
        endInput()
    }

    /// Rejects a request. Does nothing if it was answered.
    package func rejectStream(_ number: UInt64) {
        perform(isochronous.reject(number))
        endInput()
    }

    // MARK: Using

    /// Sends an SDU, and waits until the stream's queue has room for it. SDUs are sent in the order of the calls.
    ///
    /// - Parameters:
    ///   - sdu: at most the maximum of the stream.
    ///   - timeStamp: the time of the SDU by the controller's clock, in microseconds; nil to send it as soon as
    ///     possible.
    package nonisolated(nonsending) func sendSDU(
        _ sdu: [UInt8],
        timeStamp: UInt32?,
        on stream: IsochronousStreamIdentifier
    ) async throws(HostError) {
        try await wait(for: .stream(stream)) { host, call in
            host.send(StreamObserver.WaitingSDU(call: call, bytes: sdu, timeStamp: timeStamp), on: stream)
        }
    }

    private func send(_ sdu: StreamObserver.WaitingSDU, on stream: IsochronousStreamIdentifier) {
        if observers.streams[stream]?.waiting.isEmpty == false {
            observers.streams[stream]?.waiting.append(sdu)
            return
        }
        submit(sdu, on: stream)
        endInput()
    }

    private func submit(_ sdu: StreamObserver.WaitingSDU, on stream: IsochronousStreamIdentifier) {
        switch isochronous.send(sdu.bytes, timeStamp: sdu.timeStamp, on: stream, at: loop.now) {
        case .taken: end(Caller.task(sdu.call), .success(()))
        case .full where observers.streams[stream] != nil: observers.streams[stream]?.waiting.append(sdu)
        case .tooLong(let maximum):
            let error = HostError.invalidArgument(
                "the SDU has \(sdu.bytes.count) bytes, but the stream and this controller's buffers take at most \(maximum); send "
                    + "a shorter one"
            )
            end(Caller.task(sdu.call), .failure(error))
        case .full, .notOpen:
            let error: HostError =
                isochronous.endReason(of: stream).map { .disconnected($0) }
                ?? .invalidArgument("the stream is closed or only receives")
            end(Caller.task(sdu.call), .failure(error))
        }
    }

    /// Ends a stream. Unsent SDUs are lost.
    package func closeStream(_ stream: IsochronousStreamIdentifier) {
        perform(isochronous.close(stream))
        endInput()
    }

    func streamEnded(_ event: DisconnectionComplete) {
        perform(isochronous.disconnected(event.connectionHandle, .controller(event.reason)))
    }

    func endAllStreams(_ error: HostError, _ reason: DisconnectionReason) {
        perform(isochronous.reset(error, reason))
    }

    // MARK: Data

    func receiveISO(_ packet: RawSpan) {
        do throws(PacketDecodingError) {
            switch isochronous.receive(try ISOPacket(decoding: packet)) {
            case .received(let stream, let sdu):
                guard let report = observers.streams[stream]?.deliver else { return }
                deliver(.action { report(.received(sdu)) })
            case .incomplete: break
            case .violation: metrics.malformed.increment()
            case .stray: metrics.strayPackets.increment()
            }
        } catch {
            countMalformed("ISO packet", error)
        }
    }

    func streamPacketsCompleted(_ completion: NumberOfCompletedPackets.Completion) {
        _ = isochronous.sender.completed(Int(completion.numCompletedPackets), on: completion.connectionHandle)
    }

    /// Sends queued ISO packets until the controller has no free buffer, and resumes the calls that waited for room.
    func sendISOPackets() {
        guard let transport = port.transport else { return }
        while true {
            var buffer = sender.takeBuffer()
            let handle = isochronous.sender.nextPacket(into: &buffer)
            if handle != nil {
                metrics.packetsSent.increment()
                transport.send(buffer.bytes)
            }
            sender.recycle(buffer)
            guard let handle else { return }
            if let stream = isochronous.information(of: handle)?.identifier { sendWaiting(on: stream) }
        }
    }

    private func sendWaiting(on stream: IsochronousStreamIdentifier) {
        // An SDU that waits is sent again, also to be refused: the queue then has the same order as the calls.
        while observers.streams[stream]?.waiting.isEmpty == false, isochronous.hasRoom(on: stream),
            let next = observers.streams[stream]?.waiting.popFirst()
        {
            submit(next, on: stream)
        }
    }

    // MARK: Effects

    func perform(_ effects: [IsochronousEffect]) {
        for effect in effects { perform(effect) }
    }

    private func perform(_ effect: IsochronousEffect) {
        switch effect {
        case .send(let request): submit(request)
        case .opened(let number, let streams):
            guard let opening = observers.streamOpenings[number] else {
                // The caller has given the opening up.
                for stream in streams { perform(isochronous.close(stream.identifier)) }
                return
            }
            for stream in streams {
                observers.streams[stream.identifier] = StreamObserver(deliver: opening.observe(stream))
            }
            finishOpening(number, .success(streams))
        case .failed(let number, let error): finishOpening(number, .failure(error))
        case .requested(let request):
            guard let observer = observers.streamRequests.values.first else {
                return perform(isochronous.reject(request.number))
            }
            deliver(.action { observer(request) })
        case .ended(let stream, let reason):
            guard let observer = observers.streams.removeValue(forKey: stream) else { return }
            for waiting in observer.waiting { end(Caller.task(waiting.call), .failure(.disconnected(reason))) }
            deliver(.action { observer.deliver(.ended(reason)) })
        case .receptionEnded(let synchronization): releaseSynchronization(synchronization)
        }
    }

    private func finishOpening(
        _ number: UInt64,
        _ result: Result<[IsochronousStreamInformation], HostError>
    ) {
        guard let opening = observers.streamOpenings.removeValue(forKey: number) else { return }
        deliver(.action { opening.completion(result) })
    }
}
