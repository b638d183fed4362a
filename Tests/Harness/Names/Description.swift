/// Short descriptions of packets and frames.
enum Description {
    /// Describes a packet with its indicator.
    static func packet(_ packet: [UInt8]) -> String {
        switch packet.first {
        case 1 where packet.count >= 4:
            return command(packet.number(at: 1), hexadecimal(packet.dropFirst(4)))
        case 4 where packet.count >= 3:
            let code = packet[1]
            if code == EventNames.leMeta, packet.count >= 4 {
                let name = EventNames.subevents.name(of: Int(packet[3])) ?? "LE_Meta 0x" + packet[3].hexadecimal
                return "Event \(name) " + hexadecimal(packet.dropFirst(4))
            }
            let name = EventNames.events.name(of: Int(code)) ?? "0x" + code.hexadecimal
            return "Event \(name) " + hexadecimal(packet.dropFirst(3))
        case 2 where packet.count >= 5: return data(packet)
        default: return "Packet " + hexadecimal(packet)
        }
    }

    static func command(_ opcode: UInt16, _ parameters: String) -> String {
        "Command \(CommandNames.name(of: opcode)) \(parameters)".trimmingBlanks
    }

    /// Describes the payload of a frame.
    static func frame(_ payload: [UInt8], on channel: UInt16) -> String {
        var words = [ChannelNames.name(of: channel)]
        if let first = payload.first, let name = ChannelNames.name(ofPayload: first, on: channel) { words.append(name) }
        words.append(hexadecimal(payload))
        if channel == 4, payload.count == 5, payload[0] == 1 {
            words.append("(" + (ChannelNames.attributeErrors.name(of: Int(payload[4])) ?? "another error") + ")")
        }
        return words.joined(separator: " ").trimmingBlanks
    }

    static func hexadecimal(_ octets: some Sequence<UInt8>) -> String {
        octets.map(\.hexadecimal).joined(separator: " ")
    }

    private static func data(_ packet: [UInt8]) -> String {
        let field = packet.number(at: 1)
        let link = "ACL 0x" + (field & 0x0FFF).hexadecimal
        let payload = Array(packet.dropFirst(5))
        guard field >> 12 & 0b11 != 0b01 else { return "\(link) continued " + hexadecimal(payload) }
        guard payload.count >= 4, Int(payload.number(at: 0)) + 4 == payload.count else {
            return "\(link) started " + hexadecimal(payload)
        }
        return "\(link) " + frame(Array(payload.dropFirst(4)), on: payload.number(at: 2))
    }
}

extension [UInt8] {
    /// The 16 bits at an offset, least significant byte first; zero beyond the end.
    func number(at offset: Int) -> UInt16 {
        guard offset + 1 < count else { return 0 }
        return UInt16(self[offset]) | UInt16(self[offset + 1]) << 8
    }

    init(number: UInt16) {
        self = [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
    }
}
