import BLEHCI
import BluetoothHost
import BluetoothTypes

// The transfer of synchronizations with periodic advertising trains (Vol 3, Part C, 9.5.4; Vol 6, Part B, 5.1.13). A
// device informs a connected one of the timing of a train. That device can then receive the train without scanning.

/// A periodic advertising train whose synchronization a connected device has transferred.
///
/// The controller receives the train until the last reference to ``events`` is released, also after the connection has
/// ended.
public struct TransferredTrain: Sendable {
    /// The device that has transferred the synchronization.
    public let peer: DeviceAddress
    /// The value that the device's app has chosen.
    public let serviceData: UInt16
    /// The train's advertiser and advertising set, and how the controller receives the train.
    public let request: PeriodicTrainRequest
    /// The parameters of the train.
    public let train: PeriodicTrain
    /// The data of the train, until it is lost: then ``PeriodicAdvertisingEvent/lost`` follows, and the sequence ends.
    /// The host does not scan for it. It also ends when the controller is reset or the adapter is closed.
    public let events: Events<PeriodicAdvertisingEvent>
}

/// An event of ``TransferredTrains``.
public enum TransferredTrainEvent: Sendable {
    /// The controller accepts transfers from now on. After a reset of the controller, it is reported again.
    case ready
    /// The controller receives a train whose synchronization was transferred.
    case received(TransferredTrain)
    /// The controller does not receive the train whose synchronization was transferred.
    case failed(FailedSyncTransfer)
    /// As many events were dropped at this place, because the reader was too slow. Their trains are not received.
    case eventsDropped(Int)
}

extension Central {
    /// Receives the trains whose synchronizations connected devices transfer, in either role and also on later
    /// connections.
    ///
    /// If a synchronization of ``periodicAdvertising(_:)`` waits for a train that is transferred, it receives the train
    /// instead.
    ///
    /// ```swift
    /// for try await event in adapter.central.transferredTrains() {
    ///     guard case .received(let train) = event else { continue }
    ///     for await case .received(let advertisement) in train.events { print(advertisement.data.serviceData) }
    /// }
    /// ```
    public func transferredTrains(
        _ parameters: PeriodicSyncTransferParameters = PeriodicSyncTransferParameters()
    ) -> TransferredTrains {
        TransferredTrains(host: host, parameters: parameters, connection: nil)
    }
}

extension RemotePeripheral {
    /// Receives the trains whose synchronizations this peripheral transfers. Its parameters precede those of
    /// ``Central/transferredTrains(_:)``.
    public func transferredTrains(
        _ parameters: PeriodicSyncTransferParameters = PeriodicSyncTransferParameters()
    ) -> TransferredTrains {
        TransferredTrains(host: host, parameters: parameters, connection: connection)
    }

    /// Transfers the synchronization with a train that this host receives now to the peripheral.
    ///
    /// - Parameters:
    ///   - request: the train. It is received by ``Central/periodicAdvertising(_:)`` or was transferred to this host.
    ///   - serviceData: a value for the peripheral's app.
    /// - Throws:
    ///   - ``BLEError/invalidArgument(_:)`` if the train is not received now
    ///   - ``BLEError/notSupported(_:)`` if a controller does not support transfers
    ///   - ``BLEError/controllerFailed(_:)`` if the controller refuses the command
    ///   - ``BLEError/disconnected(_:)`` if the link has ended
    ///   - ``BLEError/notReady`` while the controller is being brought up again
    ///   - ``BLEError/closed`` after ``Adapter/close()``
    ///   - ``BLEError/cancelled`` if the task is cancelled
    public func transferSynchronization(
        with request: PeriodicTrainRequest,
        serviceData: UInt16 = 0
    ) async throws(BLEError) {
        let link = try usableLink
        try await translating { () throws(HostError) in
            try await host.transfer(.synchronization(request), serviceData: serviceData, on: link)
        }
    }

    /// Transfers the synchronization with the train of an advertisement to the peripheral.
    ///
    /// - Parameters:
    ///   - advertising: an advertisement with a train, which has begun.
    ///   - serviceData: a value for the peripheral's app.
    /// - Throws:
    ///   - ``BLEError/invalidArgument(_:)`` if the advertisement has no train
    ///   - ``BLEError/closed`` if it was stopped
    ///   - ``BLEError/notReady`` while its train is being set up, or the controller is being brought up again
    ///   - ``BLEError/notSupported(_:)`` if a controller does not support transfers
    ///   - ``BLEError/controllerFailed(_:)`` if the controller refuses the command
    ///   - ``BLEError/disconnected(_:)`` if the link has ended
    ///   - ``BLEError/cancelled`` if the task is cancelled
    public func transferTrain(of advertising: AdvertisingSet, serviceData: UInt16 = 0) async throws(BLEError) {
        let link = try usableLink
        try await advertising.transferTrain(serviceData: serviceData, on: link)
    }
}

extension Peripheral {
    /// Transfers the synchronization with a train that this host receives now to a client; see
    /// ``RemotePeripheral/transferSynchronization(with:serviceData:)``.
    ///
    /// - Throws: the errors of ``RemotePeripheral/transferSynchronization(with:serviceData:)``.
    public func transferSynchronization(
        with request: PeriodicTrainRequest,
        serviceData: UInt16 = 0,
        to client: ClientID
    ) async throws(BLEError) {
        try await translating { () throws(HostError) in
            try await host.transfer(.synchronization(request), serviceData: serviceData, on: client)
        }
    }

    /// Transfers the synchronization with the train of an advertisement to a client; see
    /// ``RemotePeripheral/transferTrain(of:serviceData:)``.
    ///
    /// - Throws: the errors of ``RemotePeripheral/transferTrain(of:serviceData:)``.
    public func transferTrain(
        of advertising: AdvertisingSet,
        serviceData: UInt16 = 0,
        to client: ClientID
    ) async throws(BLEError) {
        try await advertising.transferTrain(serviceData: serviceData, on: client)
    }
}

/// The trains whose synchronizations connected devices transfer; see ``Central/transferredTrains(_:)`` and
/// ``RemotePeripheral/transferredTrains(_:)``.
///
/// Each iteration is a reception of its own, which starts with the first call of `next()` and stops when its iterator
/// is released. Trains that it has returned are received further. It ends with one of these errors:
/// - ``BLEError/notSupported(_:)`` or ``BLEError/controllerFailed(_:)``: the controller does not support transfers
/// - ``BLEError/invalidArgument(_:)``: a parameter is out of its range
/// - ``BLEError/limitReached(_:)``: there are 64 receptions
/// - ``BLEError/disconnected(_:)``: the link has ended, or ``RemotePeripheral/disconnect()`` was called before the
///   iteration
/// - ``BLEError/closed``: the adapter was closed
///
/// Cancellation and overflow are described in <doc:EventSequences>.
public struct TransferredTrains: AsyncSequence, Sendable {
    public typealias Element = TransferredTrainEvent
    public typealias Failure = BLEError

    let host: BluetoothHost
    let parameters: PeriodicSyncTransferParameters
    /// The connection with the only peer that may transfer synchronizations; nil for all peers.
    let connection: Connection?

    public func makeAsyncIterator() -> Iterator {
        Iterator(trains: self)
    }

    /// An iteration of ``TransferredTrains``: one reception.
    public struct Iterator: AsyncIteratorProtocol {
        private let trains: TransferredTrains
        private var reception: Reception?

        init(trains: TransferredTrains) {
            self.trains = trains
        }

        public mutating func next() async throws(BLEError) -> TransferredTrainEvent? {
            try await next(isolation: nil)
        }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(BLEError) -> TransferredTrainEvent? {
            if let reception { return try await reception.buffer.next() }
            if Task.isCancelled { throw .cancelled }
            let link = try trains.connection?.link()
            let reception = await Reception(trains, on: link)
            self.reception = reception
            return try await reception.buffer.next()
        }
    }
}

/// A reception that runs.
private struct Reception {
    let buffer = AsyncEventBuffer<TransferredTrainEvent, BLEError>(limit: 64, report: .element { .eventsDropped($0) })
    let registration: Registration

    /// - Parameter link: the link whose peer may transfer synchronizations; nil for all links.
    init(_ trains: TransferredTrains, on link: LinkIdentifier?) async {
        let host = trains.host
        let identifier = await host.startReception(trains.parameters, on: link) { [buffer, weak host] event in
            switch event {
            case .ready: buffer.append(.ready)
            case .received(let transfer):
                guard let host else { return nil }
                let (train, deliver) = TransferredTrain.make(transfer, on: host)
                buffer.append(.received(train))
                return deliver
            case .failed(let transfer): buffer.append(.failed(transfer))
            case .ended(let error): buffer.finish(BLEError(error))
            }
            return nil
        }
        registration = Registration { host.cleanUp { $0.stopReception(identifier) } }
    }
}

extension TransferredTrain {
    /// Creates the train of a transfer, and the closure for its events.
    fileprivate static func make(
        _ transfer: ReceivedSyncTransfer,
        on host: BluetoothHost
    ) -> (TransferredTrain, @Sendable (SynchronizationEvent) -> Void) {
        // A peer decides how many trains there are. So each may keep fewer events than a train that the app has
        // requested.
        let buffer = AsyncEventBuffer<PeriodicAdvertisingEvent, Never>(
            limit: 256,
            report: .element { .eventsDropped($0) }
        )
        // The host's observer holds the trains that the app has not taken, so they do not hold the host.
        let registration = Registration { [weak host] in
            host?.cleanUp { $0.stopSynchronization(transfer.synchronization) }
        }
        let train = TransferredTrain(
            peer: transfer.peer,
            serviceData: transfer.serviceData,
            request: transfer.request,
            train: transfer.train,
            events: Events(buffer: buffer, registration: registration)
        )
        return (
            train,
            { event in
                switch event {
                case .synchronized, .lost: break
                case .report(let advertisement): buffer.append(.received(advertisement))
                case .missed(let place): buffer.append(.missed(place))
                case .ended(let error):
                    if error == .timedOut { buffer.append(.lost) }
                    buffer.finish()
                }
            }
        )
    }
}
