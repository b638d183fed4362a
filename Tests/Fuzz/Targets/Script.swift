import ByteCoding

/// Octets read as packets, each with what comes before it: how long nothing happens, and a number to choose something by.
///
/// A packet is 16 bits of length, one octet of choice, one of delay, and its octets; a length beyond the end takes what is
/// left. So any octets are a script, and most changes of an octet change one packet.
package struct Script: Hashable, Sendable {
    package struct Packet: Hashable, Sendable {
        /// Chooses, say, to whom the packet goes.
        package var choice: UInt8
        /// How long nothing happens before it, on a scale of the target's own.
        package var delay: UInt8
        package var octets: [UInt8]

        package init(choice: UInt8 = 0, delay: UInt8 = 0, octets: [UInt8]) {
            self.choice = choice
            self.delay = delay
            self.octets = octets
        }
    }

    /// How many packets of a script count: more take longer and find nothing else.
    package static let limit = 256

    package var packets: [Packet] = []

    package init(_ packets: [Packet]) {
        self.packets = packets
    }

    package init(_ octets: [UInt8]) {
        var reader = ByteReader(octets.rawSpan)
        while packets.count < Script.limit, reader.remaining >= 4, let length = try? reader.readUInt16(),
            let choice = try? reader.readUInt8(), let delay = try? reader.readUInt8(),
            let bytes = try? reader.readBytes(count: min(Int(length), reader.remaining))
        {
            packets.append(Packet(choice: choice, delay: delay, octets: [UInt8](copying: bytes)))
        }
    }

    package var octets: [UInt8] {
        PacketBuffer.bytes { buffer in
            for packet in packets {
                buffer.append(UInt16(truncatingIfNeeded: packet.octets.count))
                buffer.append(packet.choice)
                buffer.append(packet.delay)
                buffer.append(packet.octets)
            }
        }
    }
}
