import BluetoothHost

/// The central and observer roles of an adapter.
public struct Central: Sendable {
    let host: BluetoothHost

    /// Scans for as long as the result is iterated; each iteration is a scan of its own.
    public func scan(_ options: ScanOptions = ScanOptions()) -> ScanResults {
        ScanResults(host: host, options: options)
    }

    /// Connects to a peripheral. If it is connected already, the result shares its link; see
    /// <doc:RemotePeripheral#Sharing-a-link>.
    ///
    /// ``maintain(_:backoff:attemptTimeout:parameters:whileConnected:)`` keeps a connection over lost links.
    ///
    /// Several calls can wait at the same time. If they wait for more peers than fit on the controller's filter accept
    /// list (``/BluetoothHost/ControllerInformation/filterAcceptListSize``), the peers take turns of 4 s.
    ///
    /// - Parameters:
    ///   - address: the peripheral's address, as it advertises it, or the identity address of a bonded peripheral.
    ///   - timeout: how long to wait for its advertisement; nil for no limit.
    ///   - parameters: the interval, latency and supervision timeout of the connection.
    /// - Throws:
    ///   - ``BLEError/timedOut(_:)`` if no advertisement was received in time
    ///   - ``BLEError/disconnected(_:)`` with the error code of the controller if it holds no further link, or if the
    ///     link ended before it could be used
    ///   - ``BLEError/controllerFailed(_:)`` if the controller refuses a command
    ///   - ``BLEError/invalidArgument(_:)`` if the parameters are out of range
    ///   - ``BLEError/closed`` after ``Adapter/close()``
    ///   - ``BLEError/cancelled`` if the task is cancelled
    public func connect(
        to address: DeviceAddress,
        timeout: Duration? = .seconds(30),
        parameters: ConnectionParameters = ConnectionParameters()
    ) async throws(BLEError) -> RemotePeripheral {
        try await connect(toAnyOf: [address], timeout: timeout, parameters: parameters)
    }

    /// Connects to one of several peripherals, the first one found, by the controller's filter accept list.
    ///
    /// If one of them is connected already, the result shares its link; see <doc:RemotePeripheral#Sharing-a-link>.
    /// Peers that do not fit on the list take turns, as with ``connect(to:timeout:parameters:)``.
    ///
    /// - Parameters:
    ///   - addresses: one address or more, as the peripherals advertise them, or identity addresses of bonded
    ///     peripherals.
    ///   - timeout: how long to wait for an advertisement of one of them; nil for no limit.
    ///   - parameters: the interval, latency and supervision timeout of the connection.
    /// - Throws:
    ///   - ``BLEError/timedOut(_:)`` if no advertisement was received in time
    ///   - ``BLEError/disconnected(_:)`` with the error code of the controller if it holds no further link, or if the
    ///     link ended before it could be used
    ///   - ``BLEError/controllerFailed(_:)`` if the controller refuses a command
    ///   - ``BLEError/invalidArgument(_:)`` if there is no address, or the parameters are out of range
    ///   - ``BLEError/closed`` after ``Adapter/close()``
    ///   - ``BLEError/cancelled`` if the task is cancelled
    public func connect(
        toAnyOf addresses: [DeviceAddress],
        timeout: Duration? = .seconds(30),
        parameters: ConnectionParameters = ConnectionParameters()
    ) async throws(BLEError) -> RemotePeripheral {
        let names = addresses.map { "\($0)" }.joined(separator: ", ")
        return try await translating("connecting to \(names)") { () throws(HostError) in
            let link: LinkIdentifier
            do throws(HostError) {
                link = try await host.connect(toAnyOf: Set(addresses), parameters: parameters, timeout: timeout)
            } catch {
                throw error.withReasonOfRefusedLink
            }
            do throws(HostError) {
                return RemotePeripheral(host: host, link: link, address: try await host.information(on: link).peer)
            } catch {
                throw error.withReasonOfUnusedLink
            }
        }
    }
}

extension HostError {
    /// The error of a controller that holds no further link. Some controllers report it by the status of the command,
    /// others by that of the event (Vol 4, Part E, 7.8.12, 7.8.66).
    fileprivate var withReasonOfRefusedLink: HostError {
        guard case .command(.status(let code, _)) = self else { return self }
        switch code {
        case .memoryCapacityExceeded, .connectionLimitExceeded, .connectionRejectedDueToLimitedResources:
            return .disconnected(.controller(code))
        default: return self
        }
    }

    /// The error of a link that ended before it could be used. The peer chooses the reason of such an end, so its code
    /// must not mean that the controller holds no further link.
    fileprivate var withReasonOfUnusedLink: HostError {
        guard case .disconnected(.controller(let code)) = self else { return self }
        switch code {
        case .memoryCapacityExceeded, .connectionLimitExceeded, .connectionRejectedDueToLimitedResources:
            return .disconnected(.controller(.connectionFailedToBeEstablished))
        default: return self
        }
    }
}

/// The results of a scan: an advertiser is reported when it is new or has changed.
///
/// Each iteration is a scan of its own, which starts with the first call of `next()` and stops when its iterator is
/// released. It ends with an error if the controller refuses to scan or the adapter is closed. Cancellation and
/// overflow are described in <doc:EventSequences>; ``/BluetoothHost/Advertisement/droppedBefore`` reports dropped
/// advertisements.
public struct ScanResults: AsyncSequence, Sendable {
    public typealias Element = Advertisement
    public typealias Failure = BLEError

    let host: BluetoothHost
    let options: ScanOptions

    public func makeAsyncIterator() -> Iterator {
        Iterator(host: host, options: options)
    }

    /// An iteration of ``ScanResults``: one scan.
    public struct Iterator: AsyncIteratorProtocol {
        private let host: BluetoothHost
        private let options: ScanOptions
        private var scan: Scan?

        init(host: BluetoothHost, options: ScanOptions) {
            self.host = host
            self.options = options
        }

        @inlinable
        public mutating func next() async throws(BLEError) -> Advertisement? {
            try await next(isolation: nil)
        }

        // Inlined into the loop of an app. A call would change the executor twice for each advertisement.
        @inlinable
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(BLEError) -> Advertisement? {
            if let advertisement = takeReady() { return advertisement }
            return try await takeNext()
        }

        /// Takes the next advertisement, if there is one.
        @usableFromInline
        func takeReady() -> Advertisement? { scan?.buffer.takeReady() }

        /// Takes the next advertisement, and waits for it if there is none. Starts the scan first.
        @usableFromInline
        nonisolated(nonsending) mutating func takeNext() async throws(BLEError) -> Advertisement? {
            if let scan { return try await scan.buffer.next() }
            if Task.isCancelled { throw .cancelled }
            let scan = await Scan(host: host, options: options)
            self.scan = scan
            return try await scan.buffer.next()
        }
    }
}

/// A scan that runs.
private struct Scan {
    let buffer: AsyncEventBuffer<Advertisement, BLEError>
    let registration: Registration

    init(host: BluetoothHost, options: ScanOptions) async {
        buffer = AsyncEventBuffer(limit: 4096, report: .mark { $0.droppedBefore = $1 }, wakingBy: host.readers)
        let scan = await host.startScan(options) { [buffer] event in
            switch event {
            case .advertisement(let advertisement): buffer.append(advertisement)
            case .ended(let error): buffer.finish(BLEError(error))
            }
        }
        registration = Registration { host.cleanUp { $0.stopScan(scan) } }
    }
}
