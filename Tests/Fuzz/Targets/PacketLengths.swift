import BLEHCI

/// The lengths in packets with an H4 indicator.
enum PacketLengths {
    /// The length of an L2CAP frame's header, in bytes.
    private static let frameHeaderLength = 4
    /// The maximum length of parameters in bytes: the headers of commands and events have one byte for it.
    private static let parameterLimit = 255

    /// Writes the actual length into the header of a packet, so that a changed packet is still read. A command or event
    /// that is too long is cut. A packet without a whole header is left unchanged.
    ///
    /// - Parameter withFrames: whether the L2CAP frame in an ACL packet that starts one gets the rest of the packet as
    ///   its length. Otherwise, fragments stay fragments.
    static func correct(_ packet: inout [UInt8], withFrames: Bool) {
        guard let type = packet.first.flatMap(PacketType.init(rawValue:)) else { return }
        let start = 1 + type.headerLength
        guard packet.count >= start else { return }
        switch type {
        case .command, .synchronous, .event:
            packet = Array(packet.prefix(start + parameterLimit))
            packet[start - 1] = UInt8(packet.count - start)
        case .acl, .iso: write(packet.count - start, to: &packet, at: start - 2)
        }
        guard withFrames, type == .acl, packet.count >= start + frameHeaderLength, startsFrame(packet) else { return }
        write(packet.count - start - frameHeaderLength, to: &packet, at: start)
    }

    /// Whether the boundary flag of an ACL packet is not that of a continuing fragment.
    private static func startsFrame(_ packet: [UInt8]) -> Bool {
        packet[2] >> 4 & 0b11 != PacketBoundaryFlag.continuing.rawValue
    }

    private static func write(_ length: Int, to packet: inout [UInt8], at offset: Int) {
        packet[offset] = UInt8(truncatingIfNeeded: length)
        packet[offset + 1] = UInt8(truncatingIfNeeded: length >> 8)
    }
}
