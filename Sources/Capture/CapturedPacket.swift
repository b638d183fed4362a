import ByteCoding

/// What a record of a capture holds: an HCI packet, or a note that stands between the packets.
public enum CapturedContent: ~Escapable {
    /// A packet and which way it went, where the capture tells; `bytes` are without the H4 indicator.
    case packet(CapturedPacketKind, CaptureDirection?, bytes: RawSpan)
    /// What the recorder says of the system or of itself, not of the air: an adapter that comes or goes, a log line, the
    /// control channel.
    case note(CaptureNote, bytes: RawSpan)
    /// A record whose place in the file is sound, but which holds no HCI packet; `bytes` are all of it, from where the
    /// H4 indicator should be.
    case malformed(PacketDecodingError, CaptureDirection?, bytes: RawSpan)
}

/// Which way a captured packet went.
public enum CaptureDirection: Hashable, Sendable {
    case hostToController
    case controllerToHost
}

/// What a captured packet is; the raw value is its H4 indicator (Vol 4, Part A, 2).
public enum CapturedPacketKind: UInt8, Hashable, Sendable {
    case command = 1
    case acl = 2
    case synchronous = 3
    case event = 4
    case iso = 5

    /// The way that packets of this kind always go; nil for data, which go both ways.
    public var onlyDirection: CaptureDirection? {
        switch self {
        case .command: .hostToController
        case .event: .controllerToHost
        case .acl, .synchronous, .iso: nil
        }
    }
}

/// What a record is that holds no HCI packet.
public enum CaptureNote: Hashable, Sendable {
    /// What Linux's monitor channel tells besides packets.
    case monitor(MonitorOpcode)
    /// A record of Apple's PacketLogger that is no packet: a line of a log, say.
    case packetLogger(PacketLoggerType)
    /// A packet of another network than Bluetooth's HCI, in a capture of several interfaces.
    case otherNetwork(CaptureLinkType)
}
