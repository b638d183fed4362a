import BluetoothHost
import L2CAP

/// An L2CAP connection-oriented channel with credit-based flow control: a stream of octets each way, beside the attributes of
/// the same link (Vol 3, Part A, 10.1 and 10.2).
///
/// ```swift
/// let channel = try await peripheral.openChannel(psm: 0x0080)
/// try await channel.write(Array("hello".utf8))
/// for try await octets in channel {
///     print(octets)
/// }
/// ```
///
/// Iterating reads the SDUs that the peer sends. The peer can send no more than is read:
/// a reader that stops stops the peer, so nothing is dropped. The iteration ends when either side closes the channel, and
/// throws where the link is lost or the peer breaks the protocol; what had come before is given first. A channel that
/// nobody keeps is closed. Several readers and cancellation are described in <doc:BLE#Sequences>.
public final class L2CAPChannel: Sendable {
    /// The longest SDUs and K-frames that this side receives, and how much of either direction waits at most.
    public typealias Configuration = CreditBasedChannel.Configuration

    /// Which service the channel reaches: its SPSM, 0x0001 to 0x00FF.
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

    /// Which link the channel is on: the client's name, where it is a client's.
    public var link: LinkIdentifier { identifier.link }

    /// How many octets the peer receives in one SDU at most; zero once the channel has ended.
    public var maximumWriteLength: Int {
        get async { await host.information(on: identifier)?.peerMTU ?? 0 }
    }

    // MARK: Sending

    /// Sends octets, and waits until the last of them have been taken for sending.
    ///
    /// They go out as one SDU where the peer receives as much at once (``maximumWriteLength``), else as several. Octets of
    /// two writes at a time may come mixed.
    ///
    /// - Throws: ``BLEError/channel(_:)`` where the channel has ended, ``BLEError/disconnected(_:)`` where the link has, and
    ///   ``BLEError/cancelled`` where the task was cancelled: how many octets have been sent is not known then.
    public func write(_ octets: [UInt8]) async throws(BLEError) {
        var rest = octets[...]
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

    /// Closes the channel once all that was written has been sent, and waits until the controller has sent it.
    ///
    /// A peer that stops to read keeps this waiting; a cancelled task closes the channel at once.
    public func finish() async {
        await host.finishChannel(identifier)
        if await signals.waitForEnd() == .cancelled {
            await close()
        } else {
            await host.flush(identifier.link)
        }
    }

    /// Closes the channel at once: what has not been sent is lost.
    public func close() async {
        await host.closeChannel(identifier)
    }

    // MARK: Ends

    /// Waits until the channel has ended, and says how; nil where the task is cancelled.
    public func ending() async -> ChannelEnd? {
        _ = await signals.waitForEnd()
        return signals.end
    }

    /// Receives SDUs and K-frames of other lengths, as soon as the peer agrees. Only enhanced channels can: those that
    /// ``RemotePeripheral/openChannels(_:psm:configuration:)`` opens.
    ///
    /// - Parameters:
    ///   - mtu: no less than before, 64 to 65,535 octets.
    ///   - mps: 64 to 4,096 octets.
    /// - Throws: ``BLEError/cancelled`` at once if the task is cancelled; the lengths may change nevertheless.
    public func reconfigure(mtu: UInt16, mps: UInt16) async throws(BLEError) {
        try await translating("reconfiguring the channel") { () throws(HostError) in
            try await host.reconfigure(identifier, mtu: mtu, mps: mps)
        }
    }

    // MARK: Receiving

    /// The next SDU; nil at the end.
    ///
    /// What the host has is taken all at once and kept here, not by an iterator: another one may go on.
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

    /// Gives the SDUs in their order. Several iterators share what comes.
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
    /// Keeps what has come, on the loop: what the channel's end leaves unread comes behind it.
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
