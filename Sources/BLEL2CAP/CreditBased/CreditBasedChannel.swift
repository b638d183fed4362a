import BLEByteCoding

/// One credit-based channel of a link. Each direction of SDUs has its own lengths and credits
/// (Vol 3, Part A, 10.1 and 10.2).
///
/// Channels belong to ``CreditBasedChannels``, which does everything that needs signaling.
public struct CreditBasedChannel {
    /// The lengths that this device can receive on a channel, and the capacity of its queues.
    public struct Configuration: Hashable, Sendable {
        /// The longest SDU that this device receives, in bytes: 23 to 65,535. The enhanced variant raises less than 64
        /// to 64.
        public var mtu: UInt16
        /// The longest K-frame payload that this device receives, in bytes: 23 to 65,533. The enhanced variant raises
        /// less than 64 to 64. The link's reassembler must accept as much.
        public var mps: UInt16
        /// Maximum number of bytes of unread SDUs. Each SDU counts 32 bytes more. The capacity is raised if the longest
        /// SDU would not fit.
        public var receiveByteCapacity: Int
        /// Maximum number of bytes of unsent SDUs. Each SDU counts 32 bytes more. A single SDU may exceed the maximum.
        /// Less than 0 is taken as 0.
        public var sendByteCapacity: Int

        /// Creates a configuration. An MPS of 247 makes a K-frame with its header fill the longest Link Layer packet.
        public init(
            mtu: UInt16 = 2048,
            mps: UInt16 = 247,
            receiveByteCapacity: Int = 32768,
            sendByteCapacity: Int = 32768
        ) {
            self.mtu = mtu
            self.mps = mps
            self.receiveByteCapacity = receiveByteCapacity
            self.sendByteCapacity = sendByteCapacity
        }

        /// Whether MTU and MPS are in their ranges.
        public var isValid: Bool { Variant.le.allows(mtu: mtu, mps: mps) }

        /// The configuration with MTU and MPS raised to the minimum of a variant.
        func raised(for variant: Variant) -> Configuration {
            var raised = self
            raised.mtu = max(mtu, variant.minimumLength)
            raised.mps = max(mps, variant.minimumLength)
            return raised
        }
    }

    /// The procedure that opens a channel. It decides what can be changed later.
    public enum Variant: Sendable {
        /// LE credit-based flow control.
        case le
        /// Enhanced credit-based flow control.
        case enhanced

        /// The minimum of MTU and MPS, in bytes.
        public var minimumLength: UInt16 {
            switch self {
            case .le: 23
            case .enhanced: 64
            }
        }

        /// The maximum MPS, in bytes.
        public static let maximumMPS: UInt16 = 65533

        func allows(mtu: UInt16, mps: UInt16) -> Bool {
            mtu >= minimumLength && (minimumLength...Variant.maximumMPS).contains(mps)
        }

        /// Whether a channel can start with this number of credits.
        func allows(initialCredits: UInt16) -> Bool { self == .le || initialCredits > 0 }
    }

    /// A violation of the peer that ended the channel (Vol 3, Part A, 3.4.3, 4.23, 4.24 and 10.1).
    public enum Violation: Error, Hashable, Sendable {
        /// A K-frame arrived without a credit.
        case noCredit
        /// A K-frame's payload was longer than our MPS.
        case frameExceedsMPS(length: Int)
        /// An SDU's first K-frame was too short for the SDU Length field.
        case missingSDULength
        /// An SDU's length exceeded our MTU.
        case sduExceedsMTU(length: Int)
        /// An SDU's K-frames held more bytes than its length.
        case segmentsExceedSDU(length: Int)
        /// We would have more than 65,535 credits.
        case creditOverflow(credits: Int, more: Int)
        /// The peer used the same endpoint for another channel.
        case destinationAlreadyAllocated
    }

    /// The reason why an SDU was not queued.
    public enum SendError: Error, Equatable, Sendable {
        /// There is no such channel, or it is not open, or it is finishing.
        case notOpen
        /// The SDU is longer than the peer's MTU, which is the associated value.
        case exceedsMTU(Int)
        /// The queue is full; ``CreditBasedChannels/Event/hasRoom(_:)`` follows.
        case noRoom
    }

    enum Phase: Equatable {
        /// The request is unanswered.
        case connecting
        /// As ``connecting``, but the channel was canceled.
        case abandoned
        case open(remote: ChannelIdentifier)
        /// Our request to end the channel is unanswered. The owner has already been informed that the channel ended.
        case disconnecting(remote: ChannelIdentifier)
    }

    /// Our endpoint of the channel. It identifies the channel on its link.
    public let identifier: ChannelIdentifier
    /// The service at the other end of the channel.
    public let spsm: SPSM
    /// The procedure that opened, or is to open, the channel.
    public let variant: Variant
    var phase: Phase
    var inbound: InboundFlow
    var outbound: OutboundFlow
    /// Whether our reconfiguration is unanswered.
    var isReconfiguring = false
    /// Whether the channel ends once everything is sent.
    var isFinishing = false
    private let sendByteCapacity: Int

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
        sendByteCapacity = configuration.sendByteCapacity
        outbound = OutboundFlow(mtu: 0, mps: 0, credits: 0, capacity: configuration.sendByteCapacity)
    }

    mutating func open(remote: ChannelIdentifier, mtu: UInt16, mps: UInt16, credits: UInt16) {
        phase = .open(remote: remote)
        outbound = OutboundFlow(mtu: mtu, mps: mps, credits: credits, capacity: sendByteCapacity)
    }

    /// Drops the unsent SDUs and returns the unread ones.
    mutating func startDisconnecting(from remote: ChannelIdentifier) -> [[UInt8]] {
        phase = .disconnecting(remote: remote)
        outbound = OutboundFlow(mtu: 0, mps: 0, credits: 0, capacity: 0)
        return inbound.readAll()
    }

    /// Whether SDUs can be sent and received: false while the channel is opening or ending.
    public var isOpen: Bool {
        if case .open = phase { true } else { false }
    }

    /// The peer's endpoint of the channel; nil until the peer has sent it.
    public var remote: ChannelIdentifier? {
        switch phase {
        case .connecting, .abandoned: nil
        case .open(let remote), .disconnecting(let remote): remote
        }
    }

    /// The longest SDU that this device receives, in bytes.
    public var mtu: Int { inbound.mtu }
    /// The longest K-frame payload that this device receives, in bytes.
    public var mps: Int { inbound.mps }
    /// The number of K-frames that the peer may send.
    public var receiveCredits: Int { inbound.credits }
    /// The number of unread SDUs.
    public var unreadCount: Int { inbound.count }
    /// The longest SDU that the peer receives, in bytes; zero until the channel is open.
    public var peerMTU: Int { outbound.mtu }
    /// The longest K-frame payload that the peer receives, in bytes; zero until the channel is open. This device sends
    /// at most 4,096 bytes in a K-frame, so that it does not delay the link's other packets for long.
    public var peerMPS: Int { outbound.mps }
    /// The number of K-frames that this device may send.
    public var sendCredits: Int { outbound.credits }
    /// The number of SDUs that are not sent completely.
    public var unsentCount: Int { outbound.count }
    /// The number of bytes of SDUs that are not sent.
    package var unsentByteCount: Int { outbound.byteCount }
}
