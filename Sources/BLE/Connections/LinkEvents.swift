import BluetoothHost

/// The events of a connection; see ``Connection/events(transmitPower:pathLoss:)``.
///
/// Each iteration starts with the first call of `next()` and stops when its iterator is released. It ends with one of
/// these errors:
/// - ``BLEError/disconnected(_:)``: the link has ended
/// - ``BLEError/notSupported(_:)`` or ``BLEError/controllerFailed(_:)``: the controller does not report what was
///   requested
/// - ``BLEError/invalidArgument(_:)``: the thresholds are out of range, or differ from those of another iteration
/// - ``BLEError/limitReached(_:)``: the link has 32 iterations
///
/// Cancellation and overflow are described in <doc:EventSequences>.
public struct LinkEvents: AsyncSequence, Sendable {
    public typealias Element = LinkEvent
    public typealias Failure = BLEError

    let connection: Connection
    let request: LinkEventRequest

    public func makeAsyncIterator() -> Iterator {
        Iterator(connection: connection, request: request)
    }

    /// An iteration of ``LinkEvents``.
    public struct Iterator: AsyncIteratorProtocol {
        private let connection: Connection
        private let request: LinkEventRequest
        private var observation: Observation?

        init(connection: Connection, request: LinkEventRequest) {
            self.connection = connection
            self.request = request
        }

        /// Starts the iteration before the first call of ``next()``. Events from now on are kept for it.
        package mutating func start() async throws(BLEError) {
            guard observation == nil else { return }
            if Task.isCancelled { throw .cancelled }
            let observation = await Observation(connection.host, try connection.link(), request)
            self.observation = observation
        }

        public mutating func next() async throws(BLEError) -> LinkEvent? {
            try await next(isolation: nil)
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(BLEError) -> LinkEvent? {
            if let observation { return try await observation.buffer.next() }
            if Task.isCancelled { throw .cancelled }
            let observation = await Observation(connection.host, try connection.link(), request)
            self.observation = observation
            return try await observation.buffer.next()
        }
    }
}

/// An observation that runs.
private struct Observation {
    let buffer = AsyncEventBuffer<LinkEvent, BLEError>(limit: 1024, report: .element { .eventsDropped($0) })
    let registration: Registration

    init(_ host: BluetoothHost, _ link: LinkIdentifier, _ request: LinkEventRequest) async {
        let observation = await host.startObservation(request, of: link) { [buffer] event in
            switch event {
            case .success(let event): buffer.append(event)
            case .failure(let error): buffer.finish(BLEError(error))
            }
        }
        registration = Registration { host.cleanUp { $0.stopObservation(observation) } }
    }
}
