import ByteCoding

/// An HCI packet out of a capture of any format, or a note that stands between the packets.
public enum CapturedContent: ~Escapable {
    /// A packet and which way it went; `bytes` are without the H4 indicator.
    case packet(CapturedPacketKind, CaptureDirection, bytes: RawSpan)
    /// What the recorder says of the system or of itself, not of the air: an adapter that comes or goes, a log line, the
    /// control channel. The number is the format's own.
    case note(UInt16, bytes: RawSpan)
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
}
