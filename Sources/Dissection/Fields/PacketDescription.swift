import Capture

/// All that one record of a capture says.
public struct PacketDescription: Sendable {
    /// From 1, as captures are usually counted.
    public var index: Int
    /// Microseconds since the beginning of 1970, UTC.
    public var time: Int64
    /// Since the first record.
    public var elapsedMicroseconds: Int64
    /// Which adapter it went through; 0xFFFF for none.
    public var adapter: UInt16
    /// Which way it went, where the capture tells.
    public var direction: CaptureDirection?
    /// What the record is: `command`, `event`, `acl`, `synchronous`, `iso` or `note`.
    public var kind: Layer.Kind
    /// From the outermost to the innermost.
    public var layers: [Layer] = []
    /// The link that the packet belongs to.
    public var link: LinkReference?
    /// The packet that this one answers, and how long that took.
    public var answered: Answered?
    /// What is wrong with the packet, if anything.
    public var malformed: [Malformation] = []

    /// A packet that another answers.
    public struct Answered: Sendable {
        /// Its number in the capture.
        public let index: Int
        /// From that packet to this one.
        public let microseconds: Int64
    }

    /// What is wrong, and in which layer.
    public struct Malformation: Sendable {
        /// The protocol whose rules are broken.
        public let layer: Layer.Kind
        /// In words.
        public let reason: String
    }
}

/// A link as each of its packets names it.
public struct LinkReference: Sendable {
    /// Counted through the capture, since handles are used again.
    public let number: Int
    /// The connection handle.
    public let handle: UInt16
    /// Nil where the link was made before the capture.
    public let peer: PeerReference?
    /// What the captured host is on the link; nil where the link was made before the capture.
    public let isCentral: Bool?
}

/// A device and how its address was told.
public struct PeerReference: Hashable, Sendable {
    /// A number of 48 bits, the first octet as written the most significant.
    public let address: UInt64
    /// As HCI tells it: 0 public, 1 random, 2 and 3 the identities that they were resolved to; nil on BR/EDR.
    public let type: UInt8?
}
