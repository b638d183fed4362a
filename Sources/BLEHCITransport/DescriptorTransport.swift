import BLEByteCoding
import BLEHCI
import CBLEBluetooth
import Dispatch
import Glibc

/// A transport on a non-blocking descriptor: an HCI socket or similar, or a stream of H4 packets.
///
/// Everything happens on the loop of the transport. Reading drains the descriptor each time it is ready. A packet is
/// written at once. On a stream, the packets sent in one turn of the loop are written in one piece at its end. Only
/// bytes that the kernel does not accept then wait for the write source.
///
/// On a serial line, bytes that are no packet are skipped until the controller has answered the host's Reset. If the
/// framing is lost later, the transport ends, because only another Reset makes it certain again (Vol 4, Part A, 4).
final class DescriptorTransport: Transport {
    /// The kind of descriptor, which determines how packets are framed in reads and writes.
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

        /// Whether the descriptor can have an error without data or a hang-up: an HCI socket whose adapter is removed.
        fileprivate var hasErrorsAlone: Bool { if case .hci = self { true } else { false } }
    }

    /// The number of bytes read before other work on the loop gets a turn.
    private static let readBudget = 256 << 10
    /// The number of bytes gathered in a turn before they are written.
    private static let gatheredLimit = 32 << 10
    /// The longest packet with its H4 indicator: an ACL packet whose data has 65,535 bytes (Vol 4, Part E, 5.4.2).
    private static let longestPacket = 1 + 4 + 0xFFFF

    private final class State {
        /// Shared with the sources, which may use the descriptor until they are cancelled.
        var owner: OwnedDescriptor?
        var decoder: H4StreamDecoder?
        /// Whether the controller has answered the last Reset on a serial line.
        var isSynchronized = false
        var packetBuffer: [UInt8] = []
        var readSource: (any DispatchSourceRead)?
        var writeSource: (any DispatchSourceWrite)?
        var isWriteSourceSuspended = true
        var backlog = WriteBacklog()
        /// Nil if each packet is read as soon as possible.
        var pacing: AdvertisingReportPacing?
        /// The bytes sent in this turn of the loop.
        var gathered = PacketBuffer(capacity: 0, headroom: 0)
        /// Whether bytes were received over TCP in this turn, and nothing was sent since.
        var owesAcknowledgment = false
        var receiver: PacketReceiver?
        var onEnd: (@Sendable (TransportError) -> Void)?
        var isClosed = false
        /// Whether the transport ends in a later turn. The last write may have been a part of a packet, so nothing
        /// may follow it.
        var isEnding = false

        init(_ owner: OwnedDescriptor) {
            self.owner = owner
        }

        deinit {
            cancelSources()
        }

        func cancelSources() {
            readSource?.cancel()
            readSource = nil
            guard let writeSource else { return }
            writeSource.cancel()
            // A suspended source does not run its cancel handler.
            if isWriteSourceSuspended { writeSource.resume() }
            self.writeSource = nil
        }
    }

    private let kind: Kind
    private let loop: LoopQueue
    private let options: TransportOptions
    private let descriptor: Int32
    private let confined: LoopConfined<State>
    private var state: State { confined.value }

    /// - Parameter sender: the device at the other end: a controller, or, on a stream, possibly a host.
    init(
        _ owner: OwnedDescriptor,
        kind: Kind,
        from sender: H4StreamDecoder.Sender = .controller,
        loop: LoopQueue,
        options: TransportOptions = TransportOptions()
    ) {
        descriptor = owner.number
        self.kind = kind
        self.loop = loop
        self.options = options
        let state = State(owner)
        state.pacing = options.pacing
        switch kind {
        // The kernel's HCI sockets have shorter packets.
        case .hci: state.packetBuffer = [UInt8](repeating: 0, count: 4096)
        case .seqpacket: state.packetBuffer = [UInt8](repeating: 0, count: DescriptorTransport.longestPacket)
        case .unix, .tcp: state.decoder = H4StreamDecoder(recovery: .fail, sender: sender)
        case .serial: state.decoder = H4StreamDecoder(recovery: .search, sender: sender)
        }
        confined = LoopConfined(state, to: loop.queue)
    }

    func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        start(receiver: PacketReceiver(onPacket), onEnd: onEnd)
    }

    func start(receiver: PacketReceiver, onEnd: @escaping @Sendable (TransportError) -> Void) {
        let state = state
        guard !state.isClosed, state.readSource == nil, let owner = state.owner else { return }
        state.receiver = receiver
        state.onEnd = onEnd
        loop.add(self, descriptor: descriptor)
        let watch = watchForErrors()
        let source = DispatchSource.makeReadSource(fileDescriptor: watch?.number ?? descriptor, queue: loop.queue)
        source.setEventHandler { [weak self] in
            if let self { loop.becameReadable(self) }
        }
        source.setCancelHandler { withExtendedLifetime((owner, watch)) {} }
        state.readSource = source
        source.activate()
    }

    /// Returns a descriptor that becomes readable when the transport's descriptor has data or an error; nil if that
    /// descriptor itself does so, or if there are too many open files.
    ///
    /// Dispatch does not report an error without data or a hang-up, and keeps a processor busy as long as there is one.
    private func watchForErrors() -> OwnedDescriptor? {
        guard kind.hasErrorsAlone else { return nil }
        let watch = OwnedDescriptor(ble_watch(descriptor))
        return watch.number >= 0 ? watch : nil
    }

    func close() {
        let state = state
        guard !state.isClosed else { return }
        flush()
        state.isClosed = true
        loop.remove(self)
        state.receiver = nil
        state.onEnd = nil
        options.sharedBacklog?.release(state.backlog.octets)
        state.backlog.removeAll()
        state.cancelSources()
        // The sources keep the descriptor open for a moment. A recovery may open a serial line again in this time.
        state.owner?.release()
        state.owner = nil
    }

    private func end(_ error: TransportError) {
        guard !state.isClosed else { return }
        let onEnd = state.onEnd
        close()
        onEnd?(error)
    }

    /// Ends the transport in a later turn, so that a sender is not called back from within its own call.
    private func endLater(_ error: TransportError) {
        state.isEnding = true
        loop.async { self.end(error) }
    }

    // MARK: Reading

    /// Reads until nothing is left. Returns false if it stopped earlier.
    ///
    /// - Parameter isPolled: whether the descriptor is polled again in any case. Then a read that does not fill the
    ///   buffer is the last. A source does not poll again: it reports data, and a hang-up behind it, only once.
    func drain(isPolled: Bool) -> Bool {
        let state = state
        var budget = DescriptorTransport.readBudget
        while !state.isClosed, budget > 0 {
            switch state.decoder == nil ? readPacket() : readStream() {
            case .success(0): end(.closedByPeer)
            case .success(let count):
                // A stream returns all available bytes that fit the buffer.
                if isPolled, state.decoder?.hadRoom == true { return true }
                budget -= count
            case .failure(let error) where error.wouldBlock: return true
            case .failure(let error): end(reason(of: error) ?? .readFailed(errno: error.code))
            }
        }
        return false
    }

    private func readPacket() -> Result<Int, Errno> {
        let state = state
        var buffer = state.packetBuffer
        state.packetBuffer = []
        defer { state.packetBuffer = buffer }
        var isInbound = true
        let result =
            kind.isShared
            ? receive(descriptor, into: &buffer, isInbound: &isInbound) : read(descriptor, into: &buffer, from: 0)
        if case .success(let count) = result, count > 0, isInbound {
            deliver(buffer.rawSpan.extracting(first: count), to: state.receiver?.beginBatch())
        }
        return result
    }

    private func readStream() -> Result<Int, Errno> {
        let state = state
        guard var decoder = state.decoder else { return .success(0) }
        state.decoder = nil
        defer { state.decoder = decoder }
        let result = decoder.fill { read(descriptor, into: &$0, from: $1) }
        if kind == .tcp, !state.owesAcknowledgment, case .success(1...) = result {
            state.owesAcknowledgment = true
            loop.flushLater(self)
        }
        let batch = state.receiver?.beginBatch()
        let isSerial = kind == .serial
        do throws(H4StreamDecoder.BrokenStream) {
            try decoder.forEachPacket { packet in
                if isSerial, packet.answersReset { state.isSynchronized = true }
                deliver(packet, to: batch)
                return !state.isClosed
            } maySearch: {
                !state.isSynchronized
            }
        } catch {
            end(.brokenStream(octet: error.octet))
        }
        return result
    }

    private func deliver(_ packet: RawSpan, to batch: PacketReceiver.Batch?) {
        state.pacing?.received(packet)
        batch?.receive(packet)
    }

    /// Decides how long the next read waits from now on, in nanoseconds.
    func decideReadDelay(at now: UInt64) -> UInt64 {
        let delay = state.pacing?.decide(at: now) ?? 0
        return isBackedUp ? 0 : delay
    }

    /// Whether a read that waits may wait longer.
    var mayDelayRead: Bool { state.pacing?.mayWait ?? false }

    // MARK: Writing

    func send(_ packet: RawSpan) {
        let state = state
        guard !state.isClosed, !state.isEnding else { return }
        if kind == .serial, packet.isReset { state.isSynchronized = false }
        state.pacing?.sent()
        guard state.backlog.isEmpty else { return wait(packet) }
        guard kind.isStream, loop.isInTurn else { return writeNow(packet) }
        if state.gathered.isEmpty { loop.flushLater(self) }
        state.gathered.append(packet)
        if state.gathered.count >= DescriptorTransport.gatheredLimit { flush() }
    }

    /// Writes the bytes sent in this turn. Acknowledges received bytes if the kernel accepted none.
    func flush() {
        let state = state
        guard !state.isClosed, !state.isEnding else { return }
        if !state.gathered.isEmpty {
            var buffer = PacketBuffer(capacity: 0, headroom: 0)
            swap(&buffer, &state.gathered)
            writeNow(buffer.bytes)
            buffer.reset()
            state.gathered = buffer
        }
        acknowledge()
    }

    /// Makes the kernel acknowledge received bytes at once. A peer that sends small pieces by Nagle's algorithm waits
    /// for this before it sends the next. Sent bytes carry the acknowledgment themselves.
    private func acknowledge() {
        guard state.owesAcknowledgment else { return }
        state.owesAcknowledgment = false
        _ = ble_tcp_set_quick_ack(descriptor)
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
        let result =
            kind.isSocket
            ? BLEHCITransport.send(descriptor, bytes)
            : BLEHCITransport.write(descriptor, bytes)
        if case .success(1...) = result { state.owesAcknowledgment = false }
        return result
    }

    private func wait(_ bytes: RawSpan) {
        let state = state
        guard state.backlog.octets + bytes.byteCount <= options.backlogByteLimit,
            options.sharedBacklog?.take(bytes.byteCount) ?? true
        else { return endLater(.overflow) }
        state.backlog.append(bytes)
        guard state.isWriteSourceSuspended, let owner = state.owner else { return }
        state.isWriteSourceSuspended = false
        if let writeSource = state.writeSource { return writeSource.resume() }
        let source = DispatchSource.makeWriteSource(fileDescriptor: descriptor, queue: loop.queue)
        source.setEventHandler { [weak self] in self?.becameWritable() }
        source.setCancelHandler { withExtendedLifetime(owner) {} }
        state.writeSource = source
        source.activate()
    }

    /// Whether bytes wait that the kernel has not accepted.
    var isBackedUp: Bool { !state.backlog.isEmpty }

    /// Writes bytes that the kernel did not accept before.
    func becameWritable() {
        let state = state
        guard !state.isClosed, !state.isEnding else { return }
        let waiting = state.backlog.octets
        let error = state.backlog.flush(write)
        options.sharedBacklog?.release(waiting - state.backlog.octets)
        if let error {
            if !error.wouldBlock { end(reason(of: error) ?? .writeFailed(errno: error.code)) }
        } else if !state.isWriteSourceSuspended {
            state.isWriteSourceSuspended = true
            state.writeSource?.suspend()
        }
    }

    /// Maps an errno that reveals the state of the other end to an error. Returns nil for other errnos.
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

extension RawSpan {
    /// Whether the packet is the command Reset (Vol 4, Part E, 7.3.2).
    fileprivate var isReset: Bool {
        self[checked: 0] == PacketType.command.rawValue && self[checked: 1] == 0x03 && self[checked: 2] == 0x0C
    }

    /// Whether the packet is the Command Complete event of a Reset (Vol 4, Part E, 7.7.14).
    fileprivate var answersReset: Bool {
        self[checked: 0] == PacketType.event.rawValue && self[checked: 1] == 0x0E && self[checked: 4] == 0x03
            && self[checked: 5] == 0x0C
    }
}
