import BLEByteCoding

/// Bytes that are read as packets, each with a delay before it and a number for choices.
///
/// A packet consists of 16 bits of length, one byte of choice, one byte of delay, and its bytes. A length beyond the
/// end takes the remaining bytes. So any bytes are a script, and most changes of a byte change one packet.
package struct Script: Hashable, Sendable {
    package struct Packet: Hashable, Sendable {
        /// A choice of the target, for example the destination of the packet.
        package var choice: UInt8
        /// The delay before the packet, in units of the target.
        package var delay: UInt8
        package var octets: [UInt8]

        package init(choice: UInt8 = 0, delay: UInt8 = 0, octets: [UInt8]) {
            self.choice = choice
            self.delay = delay
            self.octets = octets
        }
    }

    /// Maximum number of packets of a script: more take longer without finding more.
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
