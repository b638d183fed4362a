/// What a record of Linux's monitor channel is (the kernel's `hci_mon.h`).
public struct MonitorOpcode: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16

    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// An adapter has come; see ``MonitorNewIndex``.
    public static let newIndex = MonitorOpcode(rawValue: 0)
    /// An adapter has gone.
    public static let deleteIndex = MonitorOpcode(rawValue: 1)
    public static let commandPacket = MonitorOpcode(rawValue: 2)
    public static let eventPacket = MonitorOpcode(rawValue: 3)
    public static let aclTransmitted = MonitorOpcode(rawValue: 4)
    public static let aclReceived = MonitorOpcode(rawValue: 5)
    public static let synchronousTransmitted = MonitorOpcode(rawValue: 6)
    public static let synchronousReceived = MonitorOpcode(rawValue: 7)
    /// An adapter has been brought up.
    public static let openIndex = MonitorOpcode(rawValue: 8)
    /// An adapter has been brought down.
    public static let closeIndex = MonitorOpcode(rawValue: 9)
    /// An adapter's address and manufacturer, once they are known.
    public static let indexInformation = MonitorOpcode(rawValue: 10)
    /// What a controller reports by a way of its manufacturer's own.
    public static let vendorDiagnostics = MonitorOpcode(rawValue: 11)
    /// A line of the kernel's; text that may end with a zero.
    public static let systemNote = MonitorOpcode(rawValue: 12)
    /// A line that a program has logged.
    public static let userLogging = MonitorOpcode(rawValue: 13)
    /// A program has opened a control channel.
    public static let controlOpen = MonitorOpcode(rawValue: 14)
    /// A program has closed a control channel.
    public static let controlClose = MonitorOpcode(rawValue: 15)
    /// A program's command on a control channel.
    public static let controlCommand = MonitorOpcode(rawValue: 16)
    /// What the kernel told a program on a control channel.
    public static let controlEvent = MonitorOpcode(rawValue: 17)
    public static let isoTransmitted = MonitorOpcode(rawValue: 18)
    public static let isoReceived = MonitorOpcode(rawValue: 19)

    /// The packet that records of this opcode hold, and which way it went; nil for a note.
    public var packet: (kind: CapturedPacketKind, direction: CaptureDirection)? {
        switch self {
        case .commandPacket: (.command, .hostToController)
        case .eventPacket: (.event, .controllerToHost)
        case .aclTransmitted: (.acl, .hostToController)
        case .aclReceived: (.acl, .controllerToHost)
        case .synchronousTransmitted: (.synchronous, .hostToController)
        case .synchronousReceived: (.synchronous, .controllerToHost)
        case .isoTransmitted: (.iso, .hostToController)
        case .isoReceived: (.iso, .controllerToHost)
        default: nil
        }
    }

    /// The opcode of records that hold such a packet; nil for a command or an event that goes the wrong way.
    public init?(_ kind: CapturedPacketKind, _ direction: CaptureDirection) {
        switch (kind, direction) {
        case (.command, .hostToController): self = .commandPacket
        case (.event, .controllerToHost): self = .eventPacket
        case (.acl, .hostToController): self = .aclTransmitted
        case (.acl, .controllerToHost): self = .aclReceived
        case (.synchronous, .hostToController): self = .synchronousTransmitted
        case (.synchronous, .controllerToHost): self = .synchronousReceived
        case (.iso, .hostToController): self = .isoTransmitted
        case (.iso, .controllerToHost): self = .isoReceived
        case (.command, .controllerToHost), (.event, .hostToController): return nil
        }
    }

    var meaning: RecordLayout.Meaning {
        packet.map { .packet($0.kind, $0.direction) } ?? .note(.monitor(self))
    }
}
