import ByteCoding

/// One credit-based channel of a link: SDUs both ways, each way with its own lengths and credits (Vol 3, Part A, 10.1
/// and 10.2).
///
/// Channels live in ``CreditBasedChannels``, which does all that needs signalling.
public struct CreditBasedChannel {
    /// What we can receive on a channel, and how much of either direction we hold.
    public struct Configuration: Hashable, Sendable {
        /// The longest SDU that we receive, in octets: 23 to 65,535. The enhanced variant makes less than 64 into 64.
        public var mtu: UInt16
        /// The longest K-frame payload that we receive, in octets: 23 to 65,533. The enhanced variant makes less than 64
        /// into 64. The link's reassembler must take as much.
        public var mps: UInt16
        /// How many octets of SDUs not read yet we hold at most; more where the longest SDU would not fit.
        public var receiveCapacity: Int
        /// How many octets of SDUs not sent yet we hold at most, but for a single one.
        public var sendCapacity: Int

        /// - Parameter mps: 247 makes a K-frame with its header fill the longest Link Layer packet.
        public init(
            mtu: UInt16 = 2048,
            mps: UInt16 = 247,
            receiveCapacity: Int = 32768,
            sendCapacity: Int = 32768
        ) {
            self.mtu = mtu
            self.mps = mps
            self.receiveCapacity = receiveCapacity
            self.sendCapacity = sendCapacity
        }

        /// Whether MTU and MPS are in their ranges.
        public var isValid: Bool { Variant.le.allows(mtu: mtu, mps: mps) }

        /// The same with MTU and MPS no less than a variant allows.
        func raised(for variant: Variant) -> Configuration {
            var raised = self
            raised.mtu = max(mtu, variant.minimumLength)
            raised.mps = max(mps, variant.minimumLength)
            return raised
        }
    }

    /// How a channel is made, and what of it can be changed.
    public enum Variant: Sendable {
        /// LE credit-based flow control.
        case le
        /// Enhanced credit-based flow control.
        case enhanced

        /// The least MTU and the least MPS, in octets.
        public var minimumLength: UInt16 {
            switch self {
            case .le: 23
            case .enhanced: 64
            }
        }

        /// The greatest MPS, in octets.
        public static let maximumMPS: UInt16 = 65533

        func allows(mtu: UInt16, mps: UInt16) -> Bool {
            mtu >= minimumLength && (minimumLength...Variant.maximumMPS).contains(mps)
        }

        /// Whether a channel can start with so many credits.
        func allows(initialCredits: UInt16) -> Bool { self == .le || initialCredits > 0 }
    }

    /// What a peer did wrong, so that the channel had to end (Vol 3, Part A, 3.4.3, 4.23, 4.24 and 10.1).
    public enum Violation: Error, Hashable, Sendable {
        /// A K-frame came without a credit for it.
        case noCredit
        /// A K-frame's payload was longer than our MPS.
        case frameExceedsMPS(length: Int)
        /// An SDU's first K-frame was too short for the SDU's length.
        case missingSDULength
        /// An SDU was to be longer than our MTU.
        case sduExceedsMTU(length: Int)
        /// An SDU's K-frames held more octets than its length said.
        case segmentsExceedSDU(length: Int)
        /// We would have had more than 65,535 credits.
        case creditOverflow(credits: Int, more: Int)
        /// The peer gave the same end to another channel.
        case destinationAlreadyAllocated
    }

    /// An SDU was not taken for sending.
    public enum SendError: Error, Equatable, Sendable {
        /// There is no such channel, or it is not open, or it finishes.
        case notOpen
        /// The SDU is longer than the peer's MTU, which is given.
        case exceedsMTU(Int)
        /// Too much waits already; ``CreditBasedChannels/Event/hasRoom(_:)`` follows.
        case noRoom
    }

    enum Phase: Equatable {
        /// Its request has not been answered.
        case connecting
        /// As ``connecting``, but nobody wants the channel any more.
        case abandoned
        case open(remote: ChannelIdentifier)
        /// Our request to end it has not been answered; nobody cares for the channel but us.
        case disconnecting(remote: ChannelIdentifier)
    }

    /// Our end of the channel, which names it on its link.
    public let identifier: ChannelIdentifier
    /// The service that the channel reaches.
    public let spsm: SPSM
    public let variant: Variant
    var phase: Phase
    var inbound: InboundFlow
    var outbound: OutboundFlow
    /// Whether our reconfiguration has not been answered yet.
    var isReconfiguring = false
    /// Whether the channel ends as soon as all is sent.
    var isFinishing = false
    private let sendCapacity: Int

    init(
        _ identifier: ChannelIdentifier,
        spsm: SPSM,
        variant: Variant,
        configuration: Configuration
    ) {
        self.identifier = identifier
        self.spsm = spsm
        self.variant = variant
        phase = .connecting
        inbound = InboundFlow(configuration.raised(for: variant))
        sendCapacity = configuration.sendCapacity
        outbound = OutboundFlow(mtu: 0, mps: 0, credits: 0, capacity: configuration.sendCapacity)
    }

    mutating func open(remote: ChannelIdentifier, mtu: UInt16, mps: UInt16, credits: UInt16) {
        phase = .open(remote: remote)
        outbound = OutboundFlow(mtu: mtu, mps: mps, credits: credits, capacity: sendCapacity)
    }

    /// Lets go of what is not sent, and returns what is not read.
    mutating func startDisconnecting(from remote: ChannelIdentifier) -> [[UInt8]] {
        phase = .disconnecting(remote: remote)
        outbound = OutboundFlow(mtu: 0, mps: 0, credits: 0, capacity: 0)
        return inbound.readAll()
    }

    public var isOpen: Bool {
        if case .open = phase { true } else { false }
    }

    /// The peer's end of the channel, once it has told.
    public var remote: ChannelIdentifier? {
        switch phase {
        case .connecting, .abandoned: nil
        case .open(let remote), .disconnecting(let remote): remote
        }
    }

    /// The longest SDU that we receive, in octets.
    public var mtu: Int { inbound.mtu }
    /// The longest K-frame payload that we receive, in octets.
    public var mps: Int { inbound.mps }
    /// How many K-frames the peer may send.
    public var receiveCredits: Int { inbound.credits }
    /// How many SDUs wait to be read.
    public var unreadCount: Int { inbound.count }
    /// The longest SDU that the peer receives, in octets; zero until the channel is open.
    public var peerMTU: Int { outbound.mtu }
    /// The longest K-frame payload that the peer receives, in octets; zero until the channel is open.
    public var peerMPS: Int { outbound.mps }
    /// How many K-frames we may send.
    public var sendCredits: Int { outbound.credits }
    /// How many SDUs are not sent whole yet.
    public var unsentCount: Int { outbound.count }
}
