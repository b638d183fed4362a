import ByteCoding
import CBluetooth
import DequeModule
import Dispatch
import Glibc

/// A transport on a non-blocking descriptor: an HCI socket, or a stream of H4 packets.
///
/// Everything happens on the queue it is made with. Reading drains the descriptor each time it is ready; a packet is
/// written at once, and only what the kernel does not take then waits for the write source.
final class DescriptorTransport: Transport, @unchecked Sendable {
    /// How packets lie in what is read and written.
    enum Framing {
        /// One packet in each read and write.
        case packets
        case stream(H4StreamDecoder.Recovery)
    }

    /// How many octets may wait to be written before the controller is given up.
    private static let writeLimit = 4 << 20
    /// How many octets are read before others on the loop have a turn.
    private static let readBudget = 256 << 10

    private let descriptor: Int32
    private let queue: DispatchQueue
    private let isTCP: Bool
    private var decoder: H4StreamDecoder?
    private var packetBuffer: [UInt8] = []
    private var readSource: (any DispatchSourceRead)?
    private var writeSource: (any DispatchSourceWrite)?
    private var waiting = Deque<[UInt8]>()
    private var waitingOctets = 0
    private var onPacket: (@Sendable (RawSpan) -> Void)?
    private var onEnd: (@Sendable (TransportError) -> Void)?
    private var isClosed = false

    init(descriptor: Int32, framing: Framing, isTCP: Bool = false, queue: DispatchQueue) {
        self.descriptor = descriptor
        self.queue = queue
        self.isTCP = isTCP
        switch framing {
        case .packets: packetBuffer = [UInt8](repeating: 0, count: 4096)
        case .stream(let recovery): decoder = H4StreamDecoder(recovery: recovery)
        }
    }

    deinit {
        if readSource == nil { _ = Glibc.close(descriptor) }
    }

    func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void, onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        self.onPacket = onPacket
        self.onEnd = onEnd
        let descriptor = descriptor
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler { [weak self] in self?.drain() }
        source.setCancelHandler { _ = Glibc.close(descriptor) }
        readSource = source
        source.activate()
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        onPacket = nil
        onEnd = nil
        waiting.removeAll()
        writeSource?.cancel()
        writeSource = nil
        readSource?.cancel()
    }

    private func end(_ error: TransportError) {
        let onEnd = onEnd
        close()
        onEnd?(error)
    }

    // MARK: Reading

    private func drain() {
        var budget = DescriptorTransport.readBudget
        while !isClosed, budget > 0 {
            let result = decoder == nil ? readPacket() : readStream()
            switch result {
            case .success(0): return end(.closedByPeer)
            case .success(let count): budget -= count
            case .failure(let error) where error.wouldBlock: return
            case .failure(let error): return end(.readFailed(errno: error.code))
            }
        }
    }

    private func readPacket() -> Result<Int, Errno> {
        var buffer = packetBuffer
        packetBuffer = []
        defer { packetBuffer = buffer }
        let result = read(descriptor, into: &buffer, from: 0)
        if case .success(let count) = result, count > 0 {
            onPacket?(buffer.rawSpan.extracting(first: count))
        }
        return result
    }

    private func readStream() -> Result<Int, Errno> {
        guard var decoder else { return .success(0) }
        self.decoder = nil
        defer { self.decoder = decoder }
        let result = decoder.fill { read(descriptor, into: &$0, from: $1) }
        if isTCP { _ = ble_tcp_set_quick_ack(descriptor) }
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
        guard waiting.isEmpty else { return wait([UInt8](copying: packet)) }
        switch write(descriptor, packet) {
        case .success(let count):
            if count < packet.byteCount { wait([UInt8](copying: packet.extracting(droppingFirst: count))) }
        case .failure(let error) where error.wouldBlock: wait([UInt8](copying: packet))
        case .failure(let error): endLater(.writeFailed(errno: error.code))
        }
    }

    private func wait(_ bytes: [UInt8]) {
        waitingOctets += bytes.count
        guard waitingOctets <= DescriptorTransport.writeLimit else { return endLater(.overflow) }
        waiting.append(bytes)
        guard writeSource == nil else { return }
        let source = DispatchSource.makeWriteSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler { [weak self] in self?.writeWaiting() }
        writeSource = source
        source.activate()
    }

    private func writeWaiting() {
        while !isClosed, let next = waiting.first {
            switch write(descriptor, next.rawSpan) {
            case .success(let count):
                waitingOctets -= count
                if count < next.count {
                    waiting[0] = Array(next[count...])
                } else {
                    waiting.removeFirst()
                }
            case .failure(let error) where error.wouldBlock: return
            case .failure(let error): return end(.writeFailed(errno: error.code))
            }
        }
        writeSource?.cancel()
        writeSource = nil
    }

    /// Whoever sends is not to be called back in the middle of it.
    private func endLater(_ error: TransportError) {
        queue.async { [self] in
            if !isClosed { end(error) }
        }
    }
}
