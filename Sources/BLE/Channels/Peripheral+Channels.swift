import BLEL2CAP
import BluetoothHost
import Synchronization

/// The security that a channel requires of the link, such as encryption; see
/// ``/BLEL2CAP/SPSMRegistry/SecurityRequirements``.
public typealias ChannelSecurity = SPSMRegistry.SecurityRequirements

extension Peripheral {
    /// Lets peers open L2CAP channels to a service, whichever side made the connection.
    ///
    /// ```swift
    /// let listener = try await adapter.peripheral.publishChannel()
    /// for await channel in listener {
    ///     Task { for try await bytes in channel { try await channel.write(bytes) } }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - psm: the service's SPSM, 0x0001 to 0x00FF; nil for a free one of 0x0080 to 0x00FF. The app then has to send
    ///     it to peers in some way of its own.
    ///   - configuration: the lengths that this side receives: an MPS of at most 4,096 bytes.
    ///   - security: the security that the link must have; otherwise peers are refused.
    /// - Throws: ``BLEError/channel(_:)`` if the PSM already has a service.
    public func publishChannel(
        psm: UInt16? = nil,
        configuration: L2CAPChannel.Configuration = .init(),
        security: ChannelSecurity = .init()
    ) async throws(BLEError) -> ChannelListener {
        let buffer = AsyncEventBuffer<L2CAPChannel, Never>(limit: ChannelListener.backlog, report: .none)
        let service = SPSMRegistry.Service(configuration: configuration, security: security)
        let published = try await translating { () throws(HostError) in
            try await host.publishChannels(service, at: psm.map { SPSM(rawValue: $0) }) { [weak host] opened in
                let signals = ChannelSignals()
                if let host { buffer.append(L2CAPChannel(host: host, opened: opened, signals: signals)) }
                return { signals.take($0) }
            }
        }
        let observer = await host.observe { event in
            if case .closed = event { buffer.finish() }
        }
        return ChannelListener(host: host, psm: published, buffer: buffer, observer: observer)
    }
}

/// The channels that peers open to a service of this host. The service exists until the listener is closed or released.
///
/// The sequence ends after ``close()``, and when the adapter is closed. Several readers and cancellation are described
/// in <doc:EventSequences>. Up to 64 channels wait for the app; if more come, the oldest is closed and counted.
public final class ChannelListener: AsyncSequence, Sendable {
    public typealias Element = L2CAPChannel
    public typealias Failure = Never

    /// Maximum number of channels that wait for the app. If more come, the oldest are closed.
    static let backlog = 64

    /// The service's SPSM.
    public let psm: UInt16
    private let host: BluetoothHost
    private let published: SPSM
    fileprivate let buffer: AsyncEventBuffer<L2CAPChannel, Never>
    private let observer: UInt64
    private let isClosed = Atomic(false)

    init(host: BluetoothHost, psm: SPSM, buffer: AsyncEventBuffer<L2CAPChannel, Never>, observer: UInt64) {
        self.host = host
        self.psm = psm.rawValue
        self.buffer = buffer
        self.observer = observer
        published = psm
    }

    deinit {
        let (published, observer, isClosed) = (published, observer, isClosed.load(ordering: .relaxed))
        host.cleanUp { host in
            // The PSM may belong to another service by now.
            if !isClosed { host.unpublishChannels(at: published) }
            host.removeObserver(observer)
        }
    }

    /// The number of channels that were closed because the app did not take them.
    public var droppedCount: Int { buffer.droppedCount }

    /// Removes the service and ends the sequence. Open channels stay open.
    public func close() async {
        if !isClosed.exchange(true, ordering: .relaxed) { await host.unpublishChannels(at: published) }
        buffer.finish()
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(listener: self)
    }

    /// An iteration of a ``ChannelListener``.
    public struct Iterator: AsyncIteratorProtocol {
        /// Registers the service until it is released.
        let listener: ChannelListener

        public mutating func next() async -> L2CAPChannel? {
            await next(isolation: nil)
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async -> L2CAPChannel? {
            await listener.buffer.next()
        }
    }
}
