import ByteCoding
import CBluetooth
import Dispatch
import Glibc

/// A transport on a non-blocking descriptor: an HCI socket or its like, or a stream of H4 packets.
///
/// Everything happens on the loop it is made with. Reading drains the descriptor each time it is ready. A packet is written
/// at once; to a stream, what is sent in one turn of the loop is written at its end in one piece. Only what the kernel does
/// not take then waits for the write source.
final class DescriptorTransport: Transport, @unchecked Sendable {
    // @unchecked: used on `loop` only.

    /// What the descriptor is, and so how packets lie in what is read and written.
    enum Kind: Equatable {
        /// One packet in each read and write.
        case hci(index: Int, channel: AdapterSpecification.Channel)
        /// One packet in each read and write.
        case seqpacket
        case unix
        case tcp
        case serial

        fileprivate var isSocket: Bool { self == .seqpacket || self == .unix || self == .tcp }

        fileprivate var isStream: Bool { self == .unix || self == .tcp || self == .serial }

        fileprivate var isShared: Bool {
            if case .hci(_, .raw) = self { true } else { false }
        }
    }

    /// How many octets are read before others on the loop have a turn.
    private static let readBudget = 256 << 10
    /// How many octets are gathered in a turn before they are written.
    private static let gatheredLimit = 32 << 10

    private let kind: Kind
    private let loop: LoopQueue
    private let options: TransportOptions
    private let descriptor: Int32
    /// Shared with the sources, which may use the descriptor until they are cancelled.
    private var owner: OwnedDescriptor?
    private var decoder: H4StreamDecoder?
    private var packetBuffer: [UInt8] = []
    private var readSource: (any DispatchSourceRead)?
    private var writeSource: (any DispatchSourceWrite)?
    private var isWriteSourceSuspended = true
    private var backlog = WriteBacklog()
    /// What was sent in this turn of the loop.
    private var gathered = PacketBuffer(capacity: 0, headroom: 0)
    private var onPacket: (@Sendable (RawSpan) -> Void)?
    private var onEnd: (@Sendable (TransportError) -> Void)?
    private var isClosed = false

    /// - Parameter sender: who is at the other end: a controller, or, of a stream, a host.
    init(
        _ owner: OwnedDescriptor,
        kind: Kind,
        from sender: H4StreamDecoder.Sender = .controller,
        loop: LoopQueue,
        options: TransportOptions = TransportOptions()
    ) {
        self.owner = owner
        descriptor = owner.number
        self.kind = kind
        self.loop = loop
        self.options = options
        switch kind {
        case .hci, .seqpacket: packetBuffer = [UInt8](repeating: 0, count: 4096)
        case .unix, .tcp: decoder = H4StreamDecoder(recovery: .fail, sender: sender)
        case .serial: decoder = H4StreamDecoder(recovery: .search, sender: sender)
        }
    }

    deinit {
        cancelSources()
    }

    func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        guard !isClosed, readSource == nil, let owner else { return }
        self.onPacket = onPacket
        self.onEnd = onEnd
        loop.add(self, descriptor: descriptor)
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: loop.queue)
        source.setEventHandler { [weak self] in
            if let self { loop.becameReadable(self) }
        }
        source.setCancelHandler { withExtendedLifetime(owner) {} }
        readSource = source
        source.activate()
    }

    func close() {
        guard !isClosed else { return }
        flush()
        isClosed = true
        loop.remove(self)
        onPacket = nil
        onEnd = nil
        options.sharedBacklog?.release(backlog.octets)
        backlog.removeAll()
        cancelSources()
        owner = nil
    }

    private func cancelSources() {
        readSource?.cancel()
        readSource = nil
        guard let writeSource else { return }
        writeSource.cancel()
        // A suspended source would never learn that it is cancelled.
        if isWriteSourceSuspended { writeSource.resume() }
        self.writeSource = nil
    }

    private func end(_ error: TransportError) {
        guard !isClosed else { return }
        let onEnd = onEnd
        close()
        onEnd?(error)
    }

    /// Whoever sends is not to be called back in the middle of it.
    private func endLater(_ error: TransportError) {
        loop.async { self.end(error) }
    }

    // MARK: Reading

    /// Reads until nothing is left; false where it stopped before that.
    ///
    /// - Parameter isPolled: whether the descriptor is looked at again anyway, so that a read that had room for more was the
    ///   last. A source does not: it tells of data and of a hang-up behind them only once.
    func drain(isPolled: Bool) -> Bool {
        var budget = DescriptorTransport.readBudget
        while !isClosed, budget > 0 {
            switch decoder == nil ? readPacket() : readStream() {
            case .success(0): end(.closedByPeer)
            case .success(let count):
                // A stream gives all it has, where there is room for it.
                if isPolled, decoder?.hadRoom == true { return true }
                budget -= count
            case .failure(let error) where error.wouldBlock: return true
            case .failure(let error): end(reason(of: error) ?? .readFailed(errno: error.code))
            }
        }
        return false
    }

    private func readPacket() -> Result<Int, Errno> {
        var buffer = packetBuffer
        packetBuffer = []
        defer { packetBuffer = buffer }
        var isInbound = true
        let result =
            kind.isShared
            ? receive(descriptor, into: &buffer, isInbound: &isInbound) : read(descriptor, into: &buffer, from: 0)
        if case .success(let count) = result, count > 0, isInbound {
            onPacket?(buffer.rawSpan.extracting(first: count))
        }
        return result
    }

    private func readStream() -> Result<Int, Errno> {
        guard var decoder else { return .success(0) }
        self.decoder = nil
        defer { self.decoder = decoder }
        let result = decoder.fill { read(descriptor, into: &$0, from: $1) }
        if kind == .tcp { _ = ble_tcp_set_quick_ack(descriptor) }
        do throws(H4StreamDecoder.BrokenStream) {
            try decoder.forEachPacket { packet in
                onPacket?(packet)
                return !isClosed
            }
        } catch {
            end(.brokenStream(octet: error.octet))
        }
        return result
    }

    // MARK: Writing

    func send(_ packet: RawSpan) {
        guard !isClosed else { return }
        guard backlog.isEmpty else { return wait(packet) }
        guard kind.isStream, loop.isInTurn else { return writeNow(packet) }
        if gathered.isEmpty { loop.flushLater(self) }
        gathered.append(packet)
        if gathered.count >= DescriptorTransport.gatheredLimit { flush() }
    }

    /// Writes what was sent in this turn.
    func flush() {
        guard !isClosed, !gathered.isEmpty else { return }
        var buffer = PacketBuffer(capacity: 0, headroom: 0)
        swap(&buffer, &gathered)
        writeNow(buffer.bytes)
        buffer.reset()
        gathered = buffer
    }

    private func writeNow(_ bytes: RawSpan) {
        switch write(bytes) {
        case .success(let count):
            if count < bytes.byteCount { wait(bytes.extracting(droppingFirst: count)) }
        case .failure(let error) where error.wouldBlock: wait(bytes)
        case .failure(let error): endLater(reason(of: error) ?? .writeFailed(errno: error.code))
        }
    }

    private func write(_ bytes: RawSpan) -> Result<Int, Errno> {
        kind.isSocket
            ? HCITransport.send(descriptor, bytes)
            : HCITransport.write(descriptor, bytes)
    }

    private func wait(_ bytes: RawSpan) {
        guard backlog.octets + bytes.byteCount <= options.backlogLimit,
            options.sharedBacklog?.take(bytes.byteCount) ?? true
        else { return endLater(.overflow) }
        backlog.append(bytes)
        guard isWriteSourceSuspended, let owner else { return }
        isWriteSourceSuspended = false
        if let writeSource { return writeSource.resume() }
        let source = DispatchSource.makeWriteSource(fileDescriptor: descriptor, queue: loop.queue)
        source.setEventHandler { [weak self] in self?.becameWritable() }
        source.setCancelHandler { withExtendedLifetime(owner) {} }
        writeSource = source
        source.activate()
    }

    /// Whether something waits that the kernel has not taken.
    var isBackedUp: Bool { !backlog.isEmpty }

    /// Writes on what the kernel has not taken before.
    func becameWritable() {
        guard !isClosed else { return }
        let waiting = backlog.octets
        let error = backlog.flush(write)
        options.sharedBacklog?.release(waiting - backlog.octets)
        if let error {
            if !error.wouldBlock { end(reason(of: error) ?? .writeFailed(errno: error.code)) }
        } else if !isWriteSourceSuspended {
            isWriteSourceSuspended = true
            writeSource?.suspend()
        }
    }

    /// What an errno says about the other end, if it says something.
    private func reason(of error: Errno) -> TransportError? {
        switch (kind, error.code) {
        case (.hci(let index, _), EPIPE), (.hci(let index, _), ENODEV), (.hci(let index, _), ENXIO):
            .adapterRemoved(index: index)
        case (.hci(let index, _), ENETDOWN): .adapterDown(index: index)
        case (.seqpacket, EPIPE), (.unix, EPIPE), (.tcp, EPIPE), (.seqpacket, ECONNRESET), (.unix, ECONNRESET),
            (.tcp, ECONNRESET), (.serial, EIO):
            .closedByPeer
        default: nil
        }
    }
}
