import BLECapture

/// The description of one record of a capture.
public struct PacketDescription: Sendable {
    /// The record's number, from 1, as is usual for captures.
    public var index: Int
    /// The time in microseconds since the beginning of 1970, UTC.
    public var time: Int64
    /// The time since the first record, in microseconds.
    public var elapsedMicroseconds: Int64
    /// The adapter of the packet; 0xFFFF for none.
    public var adapter: UInt16
    /// The direction, if the capture gives it, or if ACL data shows it by the Packet Boundary flag.
    public var direction: CaptureDirection?
    /// The kind of record: `command`, `event`, `acl`, `synchronous`, `iso` or `note`.
    public var kind: Layer.Kind
    /// The layers, from the outermost to the innermost.
    public var layers: [Layer] = []
    /// The link that the packet belongs to.
    public var link: LinkReference?
    /// The packet that this packet answers, and the time between them.
    public var answered: Answered?
    /// The errors in the packet.
    public var malformed: [Malformation] = []
    /// The number of packets that the recorder has lost between the preceding record and this record.
    public var dropped: UInt64 = 0

    /// The packet that another packet answers.
    public struct Answered: Sendable {
        /// The number of that packet in the capture.
        public let index: Int
        /// The time from that packet to this packet, in microseconds.
        public let microseconds: Int64
    }

    /// An error in a packet, and its layer.
    public struct Malformation: Sendable {
        /// The protocol whose rules are violated.
        public let layer: Layer.Kind
        /// A description of the error.
        public let reason: String
    }
}

/// The link of a packet.
public struct LinkReference: Sendable {
    /// The link's number in the capture. Handles are reused, numbers are not.
    public let number: Int
    /// The connection handle.
    public let handle: UInt16
    /// Nil if the link was made before the capture.
    public let peer: PeerReference?
    /// Whether the captured host is the central. Nil if the link was made before the capture, or is a BR/EDR link.
    public let isCentral: Bool?
}

/// A device, by its address and the type of the address.
public struct PeerReference: Hashable, Sendable {
    /// The address as a 48-bit number. The first byte as written is the most significant.
    public let address: UInt64
    /// The address type of HCI: 0 public, 1 random, 2 and 3 resolved identities (public and random). Nil on BR/EDR.
    public let type: UInt8?
}
