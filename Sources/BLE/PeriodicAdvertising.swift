import BluetoothHost
import BluetoothTypes

// Periodic advertising trains (Vol 3, Part C, 9.5): events with data at a fixed interval, which a scanner receives
// without a connection once it knows their timing.

/// An event of a synchronization with a periodic advertising train.
public enum PeriodicAdvertisingEvent: Sendable, Hashable {
    /// The controller receives the train from now on.
    case synchronized(PeriodicTrain)
    /// The data of one event of the train, or of one of its subevents.
    case received(PeriodicAdvertisement)
    /// The controller has received no packet in a requested subevent.
    case missed(PeriodicPlace)
    /// The train was not received for the timeout of the request, or the controller was reset. The train is searched
    /// for again.
    case lost
    /// As many events were dropped at this place, because the reader was too slow.
    case eventsDropped(Int)
}

extension Central {
    /// Receives a periodic advertising train for as long as the result is iterated; each iteration is a synchronization
    /// of its own.
    ///
    /// The host scans until the controller knows the timing of the train, and again after it was lost. A scan on
    /// ``Central/scan(_:)`` gives the address and the identifier of the advertising set.
    ///
    /// Of a train with subevents, only those that the request names are received. ``respond(_:to:slot:inSubevent:)``
    /// answers their packets.
    ///
    /// ```swift
    /// let request = PeriodicTrainRequest(address: advertisement.address, sid: sid)
    /// for try await event in adapter.central.periodicAdvertising(request) {
    ///     if case .received(let advertisement) = event { print(advertisement.data.serviceData) }
    /// }
    /// ```
    public func periodicAdvertising(_ request: PeriodicTrainRequest) -> PeriodicAdvertisingEvents {
        PeriodicAdvertisingEvents(host: host, request: request)
    }
}

/// The events of a synchronization with a periodic advertising train; see ``Central/periodicAdvertising(_:)``.
///
/// Each iteration is a synchronization of its own, which starts with the first call of `next()` and stops when its
/// iterator is released. It ends with one of these errors:
/// - ``BLEError/notSupported(_:)`` or ``BLEError/controllerFailed(_:)``: the controller cannot receive the train
/// - ``BLEError/invalidArgument(_:)``: the request is invalid, its train is received already, or the train does not
///   have the requested subevents
/// - ``BLEError/limitReached(_:)``: there are 64 synchronizations
/// - ``BLEError/closed``: the adapter was closed
///
/// Cancellation and overflow are described in <doc:EventSequences>.
public struct PeriodicAdvertisingEvents: AsyncSequence, Sendable {
    public typealias Element = PeriodicAdvertisingEvent
    public typealias Failure = BLEError

    let host: BluetoothHost
    let request: PeriodicTrainRequest

    public func makeAsyncIterator() -> Iterator {
        Iterator(host: host, request: request)
    }

    /// An iteration of ``PeriodicAdvertisingEvents``: one synchronization.
    public struct Iterator: AsyncIteratorProtocol {
        private let host: BluetoothHost
        private let request: PeriodicTrainRequest
        private var synchronization: Synchronization?

        init(host: BluetoothHost, request: PeriodicTrainRequest) {
            self.host = host
            self.request = request
        }

        public mutating func next() async throws(BLEError) -> PeriodicAdvertisingEvent? {
            try await next(isolation: nil)
        }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(BLEError) -> PeriodicAdvertisingEvent? {
            if let synchronization { return try await synchronization.buffer.next() }
            if Task.isCancelled { throw .cancelled }
            let synchronization = await Synchronization(host: host, request: request)
            self.synchronization = synchronization
            return try await synchronization.buffer.next()
        }
    }
}

/// A synchronization that runs.
private struct Synchronization {
    let buffer = AsyncEventBuffer<PeriodicAdvertisingEvent, BLEError>(
        limit: 4096,
        report: .element { .eventsDropped($0) }
    )
    let registration: Registration

    init(host: BluetoothHost, request: PeriodicTrainRequest) async {
        let identifier = await host.startSynchronization(request) { [buffer] event in
            switch event {
            case .synchronized(let train): buffer.append(.synchronized(train))
            case .report(let advertisement): buffer.append(.received(advertisement))
            case .missed(let place): buffer.append(.missed(place))
            case .lost: buffer.append(.lost)
            case .ended(let error): buffer.finish(BLEError(error))
            }
        }
        registration = Registration { host.cleanUp { $0.stopSynchronization(identifier) } }
    }
}
