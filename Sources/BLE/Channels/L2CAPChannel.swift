import BLEL2CAP
import BluetoothHost

/// An L2CAP connection-oriented channel with credit-based flow control: a stream of bytes in each direction, on the
/// same link as the attributes (Vol 3, Part A, 10.1 and 10.2).
///
/// ```swift
/// let channel = try await peripheral.openChannel(psm: 0x0080)
/// try await channel.write(Array("hello".utf8))
/// for try await bytes in channel {
///     print(bytes)
/// }
/// ```
///
/// Iterating reads the SDUs that the peer sends. The peer cannot send more than the app reads: if a reader stops, the
/// peer must stop too, so nothing is dropped. The iteration ends when either side closes the channel. It throws if the
/// link is lost or the peer breaks the protocol. The SDUs that arrived before the end are returned first. A channel is
/// closed when the last reference to it is released. Several readers and cancellation are described in
/// <doc:EventSequences>.
public final class L2CAPChannel: Sendable {
    /// The maximum lengths of SDUs and K-frames that this side receives, and of the data that waits in the host in
    /// either direction. In addition, the channel holds as much received data as the host.
    public typealias Configuration = CreditBasedChannel.Configuration

    /// The SPSM of the service that the channel reaches: 0x0001 to 0x00FF.
    public let psm: UInt16
    /// The device at the other end.
    public let peer: DeviceAddress
    let host: BluetoothHost
    let identifier: HostChannelIdentifier
    private let signals: ChannelSignals

    init(host: BluetoothHost, opened: OpenedChannel, signals: ChannelSignals) {
        self.host = host
        self.signals = signals
        identifier = opened.identifier
        psm = opened.psm.rawValue
        peer = opened.peer
    }

    deinit {
        let identifier = identifier
        host.cleanUp { $0.closeChannel(identifier) }
    }

    /// The link that carries the channel; the peer's ``ClientID`` if the peer is a client.
    public var link: LinkIdentifier { identifier.link }

    /// Maximum number of bytes that the peer receives in one SDU; zero once the channel has ended.
    public var maximumWriteLength: Int {
        get async { await host.information(on: identifier)?.peerMTU ?? 0 }
    }

    // MARK: Sending

    /// Sends bytes, and waits until the host has accepted the last of them.
    ///
    /// They are sent as one SDU if the peer accepts that length (``maximumWriteLength``), otherwise as several. The
    /// bytes of two concurrent writes may be interleaved.
    ///
    /// - Throws: ``BLEError/channel(_:)`` if the channel has ended, ``BLEError/disconnected(_:)`` if the link has
    ///   ended, and ``BLEError/cancelled`` if the task was cancelled. The number of bytes sent before a cancellation is
    ///   unknown.
    public func write(_ bytes: [UInt8]) async throws(BLEError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            if Task.isCancelled { throw .cancelled }
            let roomCount = signals.roomCount
            switch await host.send(rest, on: identifier) {
            case .taken(let count):
                rest = rest.dropFirst(count)
                if !rest.isEmpty, await signals.waitForRoom(after: roomCount) == .cancelled { throw .cancelled }
            case .notOpen:
                throw signals.end.map { BLEError($0) } ?? .channel(.ended(.byUs))
            }
        }
    }

    /// Closes the channel once all written bytes have been sent, and waits until the controller has sent them.
    ///
    /// If the peer stops reading, the call keeps waiting. If the task is cancelled, the channel is closed at once.
    ///
    /// If the channel ends earlier, by the peer or with the link, unsent bytes are lost, and the result is that end.
    /// After `byUs`, all bytes were passed to the link, unless the app has called ``close()``. A link that is lost just
    /// then may lose the last bytes. An app that must know that the peer has them all needs an answer from the peer.
    ///
    /// - Returns: how the channel has ended; nil if the task was cancelled before.
    @discardableResult
    public func finish() async -> ChannelEnd? {
        await host.finishChannel(identifier)
        guard await signals.waitForEnd() == .done else {
            await close()
            return nil
        }
        await host.flush(identifier.link)
        return signals.end
    }

    /// Closes the channel at once; unsent bytes are lost.
    public func close() async {
        await host.closeChannel(identifier)
    }

    // MARK: Ends

    /// Waits until the channel has ended, and returns the reason; nil if the task is cancelled.
    public func ending() async -> ChannelEnd? {
        _ = await signals.waitForEnd()
        return signals.end
    }

    /// Changes the lengths of SDUs and K-frames that this side receives, once the peer agrees. Only enhanced channels
    /// can do this: those that ``RemotePeripheral/openChannels(_:psm:configuration:)`` opens.
    ///
    /// The request is sent once the peer's unused credits fit sixteen times the receive capacity with the longer MPS.
    ///
    /// - Parameters:
    ///   - mtu: at least the present value, 64 to 65,535 bytes.
    ///   - mps: 64 to 4,096 bytes.
    /// - Throws:
    ///   - ``BLEError/channel(_:)`` if the channel has ended
    ///   - ``BLEError/disconnected(_:)`` if the link has ended
    ///   - ``BLEError/timedOut(_:)`` if the peer has not answered 30 s after the request, or the request could not be
    ///     sent within 30 s
    ///   - ``BLEError/cancelled`` at once if the task is cancelled; the lengths may change nevertheless
    public func reconfigure(mtu: UInt16, mps: UInt16) async throws(BLEError) {
        do throws(HostError) {
            try await host.reconfigure(identifier, mtu: mtu, mps: mps)
        } catch {
            // The host no longer knows how the channel has ended.
            if case .channel(.ended) = error, let end = signals.end { throw BLEError(end) }
            throw BLEError(error, doing: "reconfiguring the channel")
        }
    }

    // MARK: Receiving

    /// Returns the next SDU; nil at the end.
    ///
    /// Takes all SDUs that the host has at once and stores them in the channel, not in an iterator, so that another
    /// iterator can continue. The peer then gets credits for the host's capacity again. So the channel and the host
    /// together hold at most twice that capacity.
    fileprivate func next() async throws(BLEError) -> [UInt8]? {
        while true {
            if Task.isCancelled { throw .cancelled }
            if let unit = signals.takeUnit() { return unit }
            signals.willRead()
            await host.readAll(from: identifier, into: signals)
            if let unit = signals.takeUnit() { return unit }
            if await signals.waitForData() == .cancelled { throw .cancelled }
            guard let end = signals.end else { continue }
            if let unit = signals.takeUnit() { return unit }
            switch end {
            case .byUs, .byPeer: return nil
            case .violation, .unverifiedPeer, .disconnected: throw BLEError(end)
            }
        }
    }
}

extension L2CAPChannel: AsyncSequence {
    public typealias Element = [UInt8]
    public typealias Failure = BLEError

    public func makeAsyncIterator() -> Iterator {
        Iterator(channel: self)
    }

    /// Returns the SDUs in order. Several iterators share the SDUs that arrive.
    public struct Iterator: AsyncIteratorProtocol {
        private let channel: L2CAPChannel

        init(channel: L2CAPChannel) {
            self.channel = channel
        }

        public mutating func next() async throws(BLEError) -> [UInt8]? {
            try await next(isolation: nil)
        }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(BLEError) -> [UInt8]? {
            try await channel.next()
        }
    }
}

extension BluetoothHost {
    /// Stores the received SDUs, on the loop, so that SDUs left unread at the channel's end are stored behind them.
    fileprivate func readAll(from channel: HostChannelIdentifier, into signals: ChannelSignals) {
        signals.add(readAll(from: channel))
    }
}

extension BLEError {
    init(_ end: ChannelEnd) {
        self =
            switch end {
            case .disconnected(let reason): .disconnected(reason)
            case .byUs, .byPeer, .violation, .unverifiedPeer: .channel(.ended(end))
            }
    }
}
