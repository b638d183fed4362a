import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// A controller's side of HCI: the event masks of the host, and the delivery of packets to it.
struct HostInterface {
    let emit: (RawSpan) -> Void
    var eventMask = EventMask.default
    var eventMaskPage2 = EventMaskPage2()
    var leEventMask = LEEventMask.default
    var statistics = VirtualController.Statistics()
    /// Whether a command is unanswered.
    var owesAnswer = false

    mutating func reset() {
        eventMask = .default
        eventMaskPage2 = EventMaskPage2()
        leEventMask = .default
        owesAnswer = false
    }

    /// Whether the host wants an event of this code (Vol 4, Part E, 7.3.1 and 7.3.69). The bit number is the code less
    /// one.
    func wants(code: UInt8) -> Bool {
        switch code {
        case EncryptionChangeV2.code: eventMaskPage2.contains(.encryptionChangeV2)
        case AuthenticatedPayloadTimeoutExpired.code: eventMaskPage2.contains(.authenticatedPayloadTimeoutExpired)
        case 1...64: eventMask.rawValue >> UInt64(code - 1) & 1 == 1
        default: false
        }
    }

    /// Whether the host wants an LE Meta event of this subevent code (Vol 4, Part E, 7.8.1).
    func wants(subevent: UInt8) -> Bool {
        eventMask.contains(.leMeta) && (1...64).contains(subevent)
            && leEventMask.rawValue >> UInt64(subevent - 1) & 1 == 1
    }
}

extension VirtualController {
    /// The purpose of a packet to the host, which determines the faults that apply to it.
    enum PacketPurpose {
        case event
        /// Answers a command, and returns the host its command credit.
        case answer
        /// Returns buffers to the host.
        case completion
        case data
    }

    // MARK: Events

    /// Sends an event to the host unless it is masked out.
    func tell<Parameters: EventParameters & ~Escapable>(_ event: borrowing Parameters) {
        guard host.wants(code: Parameters.code) else { return }
        var packet = PacketBuffer()
        packet.append(PacketType.event.rawValue)
        event.encodePacket(into: &packet)
        send([UInt8](copying: packet.bytes), .event)
    }

    /// Sends an LE event to the host unless it is masked out.
    func tellLE<Parameters: LEEventParameters & ~Escapable>(_ event: borrowing Parameters) {
        guard host.wants(subevent: Parameters.subeventCode) else { return }
        var packet = PacketBuffer()
        packet.append(PacketType.event.rawValue)
        event.encodePacket(into: &packet)
        send([UInt8](copying: packet.bytes), .event)
    }

    /// Sends a report. The caller has checked that it is not masked out.
    func report(_ encode: (inout PacketBuffer) -> Void) {
        send(
            PacketBuffer.bytes { buffer in
                buffer.append(PacketType.event.rawValue)
                encode(&buffer)
            },
            .event
        )
    }

    /// Returns buffers to the host.
    func tellCompleted(_ count: UInt16, on handle: ConnectionHandle) {
        guard count > 0 else { return }
        host.statistics.packetsCompleted += UInt64(count)
        send(
            PacketBuffer.bytes { buffer in
                buffer.append(PacketType.event.rawValue)
                NumberOfCompletedPackets.encodePacket(
                    .init(connectionHandle: handle, numCompletedPackets: count),
                    into: &buffer
                )
            },
            .completion
        )
    }

    // MARK: Sending, with all that can go wrong

    /// Passes a packet to the host after the host's current work.
    func send(_ packet: [UInt8], _ purpose: PacketPurpose) {
        var packet = packet
        var delay = Duration.zero
        if faults != .none {
            if faults.isSilent { return }
            if purpose == .answer || purpose == .completion {
                if air.random.happens(faults.completionLoss) { return }
                delay = faults.completionDelay
            }
            if purpose != .data {
                if air.random.happens(faults.garbage) { deliver(makeGarbage(), .event, after: delay) }
                if air.random.happens(faults.truncation) { packet = truncated(packet) }
            }
        }
        deliver(packet, purpose, after: delay)
    }

    private func deliver(_ packet: [UInt8], _ purpose: PacketPurpose, after delay: Duration) {
        // A reset discards an earlier packet only if a fault has delayed it.
        let generation = generation
        air.schedule(after: delay) { [weak self] in
            guard let self, !hasVanished, delay == .zero || generation == self.generation else { return }
            if purpose == .answer { host.owesAnswer = false }
            host.emit(packet.rawSpan)
        }
    }

    /// Creates an event with a random code and random parameters.
    private func makeGarbage() -> [UInt8] {
        let length = UInt8(truncatingIfNeeded: air.random.next(upTo: 20))
        let code = UInt8(truncatingIfNeeded: air.random.next())
        var packet: [UInt8] = [PacketType.event.rawValue, code, length]
        for _ in 0..<length { packet.append(UInt8(truncatingIfNeeded: air.random.next())) }
        return packet
    }

    /// Returns an event with fewer parameters and a matching header.
    private func truncated(_ packet: [UInt8]) -> [UInt8] {
        guard packet.count > 3 else { return packet }
        let kept = Int(air.random.next(upTo: UInt64(packet.count - 4)))
        return [packet[0], packet[1], UInt8(truncatingIfNeeded: kept)] + packet[3..<3 + kept]
    }
}
