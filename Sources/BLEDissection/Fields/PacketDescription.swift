import BLECapture

/// The description of one record of a capture.
package struct PacketDescription: Sendable {
    /// The record's number, from 1, as is usual for captures.
    package var index: Int
    /// The time in microseconds since the beginning of 1970, UTC.
    package var time: Int64
    /// The time since the first record, in microseconds.
    package var elapsedMicroseconds: Int64
    /// The adapter of the packet; 0xFFFF for none.
    package var adapter: UInt16
    /// The direction, if the capture gives it, or if ACL data shows it by the Packet Boundary flag.
    package var direction: CaptureDirection?
    /// The kind of record: `command`, `event`, `acl`, `synchronous`, `iso` or `note`.
    package var kind: Layer.Kind
    /// The layers, from the outermost to the innermost.
    package var layers: [Layer] = []
    /// The link that the packet belongs to.
    package var link: LinkReference?
    /// The packet that this packet answers, and the time between them.
    package var answered: Answered?
    /// The errors in the packet.
    package var malformed: [Malformation] = []
    /// The number of packets that the recorder has lost between the preceding record and this record.
    package var dropped: UInt64 = 0

    /// The packet that another packet answers.
    package struct Answered: Sendable {
        /// The number of that packet in the capture.
        package let index: Int
        /// The time from that packet to this packet, in microseconds.
        package let microseconds: Int64
    }

    /// An error in a packet, and its layer.
    package struct Malformation: Sendable {
        /// The protocol whose rules are violated.
        package let layer: Layer.Kind
        /// A description of the error.
        package let reason: String
    }
}

/// The link of a packet.
package struct LinkReference: Sendable {
    /// The link's number in the capture. Handles are reused, numbers are not.
    package let number: Int
    /// The connection handle.
    package let handle: UInt16
    /// Nil if the link was made before the capture.
    package let peer: PeerReference?
    /// Whether the captured host is the central. Nil if the link was made before the capture, or is a BR/EDR link.
    package let isCentral: Bool?
}

/// A device, by its address and the type of the address.
package struct PeerReference: Hashable, Sendable {
    /// The address as a 48-bit number. The first byte as written is the most significant.
    package let address: UInt64
    /// The address type of HCI: 0 public, 1 random, 2 and 3 resolved identities (public and random). Nil on BR/EDR.
    package let type: UInt8?
}
