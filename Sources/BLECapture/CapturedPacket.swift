import BLEByteCoding

/// The content of a capture's record: an HCI packet, or a note between packets.
public enum CapturedContent: ~Escapable {
    /// A packet and its direction, if the capture gives it. `bytes` excludes the H4 indicator.
    case packet(CapturedPacketKind, CaptureDirection?, bytes: RawSpan)
    /// A note of the recorder about the system or itself, not a packet: an adapter that is added or removed, a log
    /// line, the control channel.
    case note(CaptureNote, bytes: RawSpan)
    /// A valid record that does not contain an HCI packet. `bytes` is the whole content, from the position of the H4
    /// indicator.
    case malformed(PacketDecodingError, CaptureDirection?, bytes: RawSpan)
}

/// The direction of a captured packet.
public enum CaptureDirection: Hashable, Sendable {
    case hostToController
    case controllerToHost
}

/// The kind of a captured packet. The raw value is its H4 indicator (Vol 4, Part A, 2).
public enum CapturedPacketKind: UInt8, Hashable, Sendable {
    case command = 1
    case acl = 2
    case synchronous = 3
    case event = 4
    case iso = 5

    /// The only direction of packets of this kind; nil for data, which has both directions.
    public var onlyDirection: CaptureDirection? {
        switch self {
        case .command: .hostToController
        case .event: .controllerToHost
        case .acl, .synchronous, .iso: nil
        }
    }
}

/// The kind of a record that contains no HCI packet.
public enum CaptureNote: Hashable, Sendable {
    /// A note of Linux's monitor channel.
    case monitor(MonitorOpcode)
    /// A record of Apple's PacketLogger that is not a packet, such as a log line.
    case packetLogger(PacketLoggerType)
    /// A packet that is not Bluetooth HCI, in a capture of several interfaces.
    case otherNetwork(CaptureLinkType)
}
