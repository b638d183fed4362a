import Glibc

/// One run of a host against a script or a capture: moves packets, answers by rules, and compares.
///
/// Everything happens in one thread. Messages of the host are processed only while the exchange waits, in their order
/// of arrival.
final class Exchange {
    /// A message from the host.
    enum Message: Equatable {
        case command(UInt16, [UInt8])
        case frame(link: UInt16, channel: UInt16, [UInt8])
        /// Any other packet, or every packet if whole packets are expected.
        case packet([UInt8])
    }

    let endpoint: Endpoint
    /// The host's process, if the harness runs it.
    var host: HostProcess?
    var journal = Journal()
    /// Maximum time to wait for each message.
    var patience: Duration

    var controller: Controller?
    var rules: [Rule] = []
    var variables: [String: [UInt8]] = [:]
    /// The connection handle for sent and received frames.
    var link: UInt16 = 0x0040
    var openLinks: Set<UInt16> = []
    var fragmentLength: Int?
    var completesPackets = true
    /// The last expected command, which waits for its answer.
    var expectedCommand: UInt16?
    /// Whether the controller is creating a connection that can be cancelled.
    var isInitiating = false

    private var packets: [[UInt8]] = []
    private var messages: [Message] = []
    private var assemblers: [UInt16: FrameAssembler] = [:]
    /// Whether an answer is being sent rather than a line of the script. The host may have disconnected before an
    /// answer.
    var isAnswering = false
    /// The reason why the host is no longer connected.
    private(set) var loss: SystemError?

    init(_ endpoint: Endpoint, patience: Duration) {
        self.endpoint = endpoint
        self.patience = patience
    }

    // MARK: Sending

    func send(_ packet: [UInt8]) throws(Difference) {
        journal.note(packet, fromHost: false)
        do throws(SystemError) {
            try endpoint.send(packet)
        } catch  where !isAnswering {
            throw Difference("the host accepts no more data: \(error)", details: hostDetails)
        } catch {
            // The host has closed its socket. The next wait for the host reports this.
        }
    }

    func send(event code: UInt8, _ parameters: [UInt8]) throws(Difference) {
        guard parameters.count <= 255 else { throw Difference("an event has at most 255 bytes of parameters") }
        try send([0x04, code, UInt8(parameters.count)] + parameters)
    }

    func send(acl data: [UInt8], boundary: UInt8) throws(Difference) {
        guard data.count <= 0xFFFF else { throw Difference("an ACL packet has at most 65535 bytes") }
        try send([0x02] + [UInt8](number: link | UInt16(boundary) << 12) + [UInt8](number: UInt16(data.count)) + data)
    }

    /// Sends a frame on the link, in fragments if configured.
    func send(_ payload: [UInt8], on channel: UInt16) throws(Difference) {
        guard payload.count <= 0xFFFF else { throw Difference("an L2CAP frame has at most 65535 bytes") }
        var rest = ([UInt8](number: UInt16(payload.count)) + [UInt8](number: channel) + payload)[...]
        var boundary: UInt8 = 0b10
        repeat {
            let piece = rest.prefix(fragmentLength ?? rest.count)
            try send(acl: Array(piece), boundary: boundary)
            rest = rest.dropFirst(piece.count)
            boundary = 0b01
        } while !rest.isEmpty
    }

    // MARK: Receiving

    /// The next unprocessed message of the host; nil if there is none.
    ///
    /// - Parameter asPacket: whether to return whole packets rather than reassembled frames.
    func nextMessage(asPacket: Bool = false) throws(Difference) -> Message? {
        while true {
            if !asPacket, !messages.isEmpty { return messages.removeFirst() }
            guard !packets.isEmpty else { return nil }
            let packet = packets.removeFirst()
            if packet.first == 0x02 { try complete(packet) }
            if asPacket { return .packet(packet) }
            switch packet.first {
            case 0x01 where packet.count >= 4 && packet.count == 4 + Int(packet[3]):
                return .command(packet.number(at: 1), Array(packet.dropFirst(4)))
            case 0x02: try assemble(packet)
            default: throw Difference("the host sent an invalid packet: \(Description.hexadecimal(packet))")
            }
        }
    }

    /// Puts back messages that no line has expected yet.
    func putBack(_ waiting: [Message]) {
        messages = waiting + messages
    }

    /// Reports a packet to the host as sent.
    private func complete(_ packet: [UInt8]) throws(Difference) {
        guard packet.count >= 5, Int(packet.number(at: 3)) == packet.count - 5 else {
            throw Difference("the host sent an ACL packet of a wrong length: \(Description.hexadecimal(packet))")
        }
        let handle = packet.number(at: 1) & 0x0FFF
        guard completesPackets, openLinks.contains(handle) else { return }
        try send(event: 0x13, [0x01] + [UInt8](number: handle) + [0x01, 0x00])
    }

    private func assemble(_ packet: [UInt8]) throws(Difference) {
        let field = packet.number(at: 1)
        let handle = field & 0x0FFF
        do throws(Complaint) {
            // A host starts a frame with 00, and continues it with 01 (Vol 4, Part E, 5.4.2).
            let isStart = field >> 12 & 0b11 == 0b00
            if let frame = try assemblers[handle, default: .init()].receive(packet.dropFirst(5), isStart: isStart) {
                messages.append(.frame(link: handle, channel: frame.channel, frame.payload))
            }
        } catch {
            throw Difference("the host sent fragments that make no frame: \(error.message)")
        }
    }

    /// Waits for an event and processes it.
    ///
    /// - Returns: false if nothing happened before the deadline.
    func wait(until deadline: ContinuousClock.Instant) throws(Difference) -> Bool {
        let remaining = ContinuousClock.now.duration(to: deadline)
        guard remaining > .zero else { return false }
        var entries: [pollfd] = []
        if let awaited = endpoint.awaited, loss == nil || endpoint.isConnected {
            entries.append(pollfd(fd: awaited, events: Int16(POLLIN), revents: 0))
        }
        if let host {
            for (descriptor, hasEnded) in [
                (host.output.descriptor, host.output.hasEnded), (host.errors.descriptor, host.errors.hasEnded),
            ] where !hasEnded { entries.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)) }
        }
        // A process whose streams have ended has nothing left to poll, and ends shortly.
        let isEnding = host.map { $0.hasEndedStreams && $0.end == nil } ?? false
        let milliseconds = Int32(clamping: Int64(remaining / .milliseconds(1)) + 1)
        _ = poll(&entries, nfds_t(entries.count), isEnding ? min(milliseconds, 5) : milliseconds)
        let ready = Set(entries.filter { $0.revents != 0 }.map(\.fd))
        if let awaited = endpoint.awaited, ready.contains(awaited) { receivePackets() }
        host?.receive(from: ready)
        if host?.hasEndedStreams == true { host?.reap() }
        return true
    }

    private func receivePackets() {
        do throws(SystemError) {
            try endpoint.receive { packet in
                journal.note(packet, fromHost: true)
                packets.append(packet)
            }
        } catch {
            journal.note("the host has closed its HCI socket")
            loss = error
        }
    }

    /// Drops the connection to the host and its state.
    func disconnectHost() {
        endpoint.close()
        packets = []
        messages = []
        assemblers = [:]
        openLinks = []
        isInitiating = false
        loss = nil
    }

    func forgetLink(_ handle: UInt16) {
        openLinks.remove(handle)
        assemblers[handle] = nil
    }

    /// Waits until the host has connected.
    func acceptHost(within time: Duration) throws(Difference) {
        loss = nil
        let deadline = ContinuousClock.now + time
        while !endpoint.isConnected {
            if let end = host?.end {
                throw Difference("the host ended with \(end) before it used its adapter", details: hostDetails)
            }
            guard try wait(until: deadline) else {
                throw Difference("no host has connected to \(endpoint.adapter) in \(time)", details: hostDetails)
            }
        }
    }

    /// The last output of the host.
    var hostDetails: [String] {
        guard let host else { return [] }
        host.reap()
        return (host.end.map { ["host      ended with \($0)"] } ?? [])
            + host.output.recent.suffix(3).map { "output    \($0)" } + host.errors.recent.map { "errors    \($0)" }
    }
}
