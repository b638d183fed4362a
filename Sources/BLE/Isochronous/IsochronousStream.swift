import BluetoothHost
import BluetoothTypes
import Synchronization

/// An isochronous stream: service data units (SDUs) of bounded length and age. A connected stream (CIS) belongs to a
/// connection (Vol 6, Part B, 4.5.13); a broadcast stream (BIS) belongs to a ``BroadcastGroup`` or a
/// ``BroadcastReception``.
///
/// ```swift
/// let parameters = ConnectedGroupParameters(sduInterval: .milliseconds(10), maximumSDUToPeripheral: 100)
/// let streams = try await adapter.central.openStreams(to: [peripheral], parameters)
/// try await streams[0].send(Array("hello".utf8))
/// for try await sdu in streams[0] {
///     if sdu.status == .valid { print(sdu.data) }
/// }
/// ```
///
/// An SDU that is not received in time is lost; the receiver gets it with
/// ``/BluetoothHost/IsochronousSDU/Status/lost``. The codec of the data is up to the app.
///
/// Iterating reads the received SDUs, and throws ``BLEError/disconnected(_:)`` when the stream has ended. If the reader
/// is too slow, the oldest SDUs are dropped and counted. Several readers and cancellation are described in
/// <doc:EventSequences>. A stream is closed when the last reference to it is released.
public final class IsochronousStream: Sendable {
    /// The link that carries the stream; the peer's ``ClientID`` if the peer is a client. Nil for a broadcast stream.
    public let link: LinkIdentifier?
    /// The number of a broadcast stream in its group, 1 to 31; nil for a connected stream.
    public let broadcastNumber: Int?
    /// Whether this side may send.
    public let canSend: Bool
    /// Whether this side may receive.
    public let canReceive: Bool
    /// The time between two events of the stream, each of which has one or more SDUs.
    public let interval: Duration
    /// The time between two SDUs that this side sends. An SDU that is sent later than that leaves intervals without an
    /// SDU.
    public let sduInterval: Duration
    /// The longest SDU that this side may send, in bytes: what both sides have agreed to, and what the controller's
    /// buffers hold.
    public let maximumSDU: Int
    private let host: BluetoothHost
    private let identifier: IsochronousStreamIdentifier
    private let buffer = AsyncEventBuffer<IsochronousSDU, BLEError>(
        limit: 256,
        report: .mark { $0.droppedBefore = $1 }
    )

    fileprivate init(host: BluetoothHost, _ information: IsochronousStreamInformation) {
        self.host = host
        identifier = information.identifier
        link = information.link
        broadcastNumber = information.broadcast?.number
        canSend = information.canSend
        canReceive = information.canReceive
        interval = information.interval
        sduInterval = information.sduInterval
        maximumSDU = information.maximumSDU
    }

    deinit {
        let identifier = identifier
        host.cleanUp { $0.closeStream(identifier) }
    }

    /// Sends an SDU, and waits until the host has accepted it. The host accepts a few SDUs ahead of time.
    ///
    /// - Parameters:
    ///   - sdu: at most ``maximumSDU`` bytes.
    ///   - timeStamp: the time of the SDU by the controller's clock, in microseconds; nil for the next event.
    /// - Throws:
    ///   - ``BLEError/disconnected(_:)`` if the stream has ended
    ///   - ``BLEError/invalidArgument(_:)`` if the stream is being closed or only receives, or the SDU is too long
    ///   - ``BLEError/cancelled`` if the task is cancelled; the SDU is not sent then
    public func send(_ sdu: [UInt8], timeStamp: UInt32? = nil) async throws(BLEError) {
        try await translating("sending an SDU") { () throws(HostError) in
            try await host.sendSDU(sdu, timeStamp: timeStamp, on: identifier)
        }
    }

    /// Closes the stream; SDUs that the controller has not sent are lost. A broadcast group ends with its last stream.
    public func close() async {
        await host.closeStream(identifier)
    }

    /// The closure for the events of the stream. It does not hold the stream.
    fileprivate var observer: @Sendable (IsochronousStreamEvent) -> Void {
        { [buffer, isBroadcast = broadcastNumber != nil] event in
            switch event {
            case .received(let sdu): buffer.append(sdu)
            case .ended(.controller(.connectionTerminatedDueToMICFailure)) where isBroadcast:
                buffer.finish(.broadcast(.wrongCode))
            case .ended(let reason): buffer.finish(.disconnected(reason))
            }
        }
    }
}

extension IsochronousStream: AsyncSequence {
    public typealias Element = IsochronousSDU
    public typealias Failure = BLEError

    public func makeAsyncIterator() -> Iterator { Iterator(stream: self) }

    /// Returns the received SDUs in order. Several iterators share the SDUs that arrive.
    public struct Iterator: AsyncIteratorProtocol {
        let stream: IsochronousStream

        public mutating func next() async throws(BLEError) -> IsochronousSDU? {
            try await next(isolation: nil)
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(BLEError) -> IsochronousSDU? {
            try await stream.buffer.next()
        }
    }
}

/// The streams of one call that opens some, from the host's loop to the calling task.
final class OpeningStreams: Sendable {
    private struct State {
        var streams: [IsochronousStream] = []
        var broadcast: BroadcastGroupInformation?
        var result: Result<Void, HostError>?
        var continuation: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())
    private let host: BluetoothHost

    init(host: BluetoothHost) {
        self.host = host
    }

    /// Makes the stream of an opening. Called before its first SDU arrives.
    func observe(_ information: IsochronousStreamInformation) -> @Sendable (IsochronousStreamEvent) -> Void {
        let stream = IsochronousStream(host: host, information)
        state.withLock {
            $0.streams.append(stream)
            $0.broadcast = information.broadcast?.information
        }
        return stream.observer
    }

    /// What a train has announced about the streams.
    var broadcast: BroadcastGroupInformation? { state.withLock { $0.broadcast } }

    func finish(_ result: Result<[IsochronousStreamInformation], HostError>) {
        let continuation = state.withLock { state in
            state.result = result.map { _ in () }
            return state.continuation.take()
        }
        continuation?.resume()
    }

    nonisolated(nonsending) func wait() async throws(BLEError) -> [IsochronousStream] {
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                if state.result == nil { state.continuation = continuation }
                return state.result != nil
            }
            if isDone { continuation.resume() }
        }
        let (streams, result) = state.withLock { state in
            defer { state.streams = [] }
            return (state.streams, state.result)
        }
        if case .failure(let error)? = result { throw BLEError(error, doing: "opening the streams") }
        return streams
    }
}

extension Central {
    /// Opens one isochronous stream to each of the peripherals, in one group. All open, or none.
    ///
    /// The adapter is opened with ``Adapter/Configuration/usesConnectedStreams``. The peripherals accept the streams.
    ///
    /// The call waits until each bonded peripheral is verified by encryption, unless the security policy does not
    /// require that. If a peripheral is no longer verified later, its stream ends with Authentication Failure.
    ///
    /// - Throws:
    ///   - ``BLEError/notSupported(_:)`` if the controller has no streams, or the configuration does not allow them
    ///   - ``BLEError/invalidArgument(_:)`` if a parameter or the number of peripherals is out of its range
    ///   - ``BLEError/limitReached(_:)`` if 16 other openings wait, or the controller keeps 240 groups
    ///   - ``BLEError/security(_:)`` if a bonded peripheral cannot be verified
    ///   - ``BLEError/controllerFailed(_:)`` if a controller or a peripheral refuses
    ///   - ``BLEError/disconnected(_:)`` if a link has ended
    ///   - ``BLEError/notReady`` while the controller is being brought up again
    ///   - ``BLEError/closed`` after ``Adapter/close()``
    ///   - ``BLEError/cancelled`` if the task is cancelled
    public func openStreams(
        to peripherals: [RemotePeripheral],
        _ parameters: ConnectedGroupParameters = ConnectedGroupParameters()
    ) async throws(BLEError) -> [IsochronousStream] {
        if Task.isCancelled { throw .cancelled }
        var links: [LinkIdentifier] = []
        for peripheral in peripherals { links.append(try peripheral.usableLink) }
        let opening = OpeningStreams(host: host)
        let number = await host.openStreams(
            to: links,
            parameters,
            observe: { opening.observe($0) },
            completion: { opening.finish($0) }
        )
        let host = host
        let result = await withTaskCancellationHandler {
            await opening.result()
        } onCancel: {
            host.begin { $0.cancelStreamOpening(number) }
        }
        return try result.get()
    }
}

extension OpeningStreams {
    nonisolated(nonsending) func result() async -> Result<[IsochronousStream], BLEError> {
        do throws(BLEError) {
            return .success(try await wait())
        } catch {
            return .failure(error)
        }
    }
}

extension Peripheral {
    /// Returns the requests of centrals for isochronous streams from now on. A request that is not accepted is rejected
    /// when it is released, or when the sequence is.
    ///
    /// The adapter is opened with ``Adapter/Configuration/usesConnectedStreams``.
    ///
    /// - Throws: ``BLEError/notSupported(_:)`` if the controller has no streams or the configuration does not allow
    ///   them.
    public func streamRequests() async throws(BLEError) -> Events<IsochronousStreamOffer> {
        let buffer = AsyncEventBuffer<IsochronousStreamOffer, Never>(limit: 16, report: .none)
        let host = host
        let number = try await translating { () throws(HostError) in
            try await host.observeStreamRequests { [weak host] request in
                if let host { buffer.append(IsochronousStreamOffer(host: host, request)) }
            }
        }
        let observer = await host.observe { event in
            if case .closed = event { buffer.finish() }
        }
        let registration = Registration {
            host.cleanUp { host in
                host.stopStreamRequests(number)
                host.removeObserver(observer)
            }
        }
        return Events(buffer: buffer, registration: registration)
    }
}

/// The request of a central for an isochronous stream; see ``Peripheral/streamRequests()``.
public final class IsochronousStreamOffer: Sendable {
    /// The connection with the central.
    public let client: ClientID
    /// The identifier of the group, which the central has chosen.
    public let group: UInt8
    /// The identifier of the stream in its group.
    public let stream: UInt8
    private let host: BluetoothHost
    private let number: UInt64

    fileprivate init(host: BluetoothHost, _ request: IsochronousStreamRequest) {
        self.host = host
        number = request.number
        client = request.link
        group = request.cigID
        stream = request.cisID
    }

    deinit {
        let number = number
        host.cleanUp { $0.rejectStream(number) }
    }

    /// Accepts the request, and waits until the stream is established.
    ///
    /// - Throws:
    ///   - ``BLEError/disconnected(_:)`` or ``BLEError/controllerFailed(_:)`` if the stream was not established
    ///   - ``BLEError/cancelled`` if the request was answered or has ended, or if the task is cancelled; a stream that
    ///     is established then is closed
    public func accept() async throws(BLEError) -> IsochronousStream {
        if Task.isCancelled { throw .cancelled }
        let opening = OpeningStreams(host: host)
        await host.acceptStream(number, observe: { opening.observe($0) }, completion: { opening.finish($0) })
        let (host, number) = (host, number)
        let result = await withTaskCancellationHandler {
            await opening.result()
        } onCancel: {
            host.begin { $0.cancelStreamOpening(number) }
        }
        guard let stream = try result.get().first else { throw .closed }
        return stream
    }

    /// Rejects the request. Does nothing if it was accepted.
    public func reject() async {
        await host.rejectStream(number)
    }
}
