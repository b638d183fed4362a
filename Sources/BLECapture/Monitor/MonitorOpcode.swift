/// The kind of a record of Linux's monitor channel (the kernel's `hci_mon.h`).
public struct MonitorOpcode: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16

    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// An adapter was added; see ``MonitorNewIndex``.
    public static let newIndex = MonitorOpcode(rawValue: 0)
    /// An adapter was removed.
    public static let deleteIndex = MonitorOpcode(rawValue: 1)
    public static let commandPacket = MonitorOpcode(rawValue: 2)
    public static let eventPacket = MonitorOpcode(rawValue: 3)
    public static let aclTransmitted = MonitorOpcode(rawValue: 4)
    public static let aclReceived = MonitorOpcode(rawValue: 5)
    public static let synchronousTransmitted = MonitorOpcode(rawValue: 6)
    public static let synchronousReceived = MonitorOpcode(rawValue: 7)
    /// An adapter was brought up.
    public static let openIndex = MonitorOpcode(rawValue: 8)
    /// An adapter was brought down.
    public static let closeIndex = MonitorOpcode(rawValue: 9)
    /// An adapter's address and manufacturer, once they are known.
    public static let indexInformation = MonitorOpcode(rawValue: 10)
    /// A vendor-specific diagnostic message of a controller.
    public static let vendorDiagnostics = MonitorOpcode(rawValue: 11)
    /// A line of the kernel's log. The text may end with a zero.
    public static let systemNote = MonitorOpcode(rawValue: 12)
    /// A line of a program's log.
    public static let userLogging = MonitorOpcode(rawValue: 13)
    /// A program opened a control channel.
    public static let controlOpen = MonitorOpcode(rawValue: 14)
    /// A program closed a control channel.
    public static let controlClose = MonitorOpcode(rawValue: 15)
    /// A program's command on a control channel.
    public static let controlCommand = MonitorOpcode(rawValue: 16)
    /// An event that the kernel sent to a program on a control channel.
    public static let controlEvent = MonitorOpcode(rawValue: 17)
    public static let isoTransmitted = MonitorOpcode(rawValue: 18)
    public static let isoReceived = MonitorOpcode(rawValue: 19)

    /// The kind and direction of the packet in records of this opcode; nil for a note.
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

    /// Creates the opcode for packets of a kind and direction. Returns nil for a command or event in the wrong
    /// direction.
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
