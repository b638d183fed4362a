import BLEByteCoding
import BLECapture

/// Sends the packets of a capture's controller, and compares the host's packets with those in the capture.
struct CapturePlayer {
    /// The differences from the capture that are allowed.
    struct Allowances {
        /// Commands whose parameters are not compared.
        var commands: Set<UInt16> = []
        /// Whether the host may set other random addresses.
        var addresses = false
        /// Whether keys and values derived from random numbers in a pairing may differ.
        var randoms = false
    }

    /// A packet with its indicator.
    struct Record: Equatable {
        /// The number of the record, from 1, as in other tools.
        let number: Int
        let isFromHost: Bool
        let packet: [UInt8]
    }

    let records: [Record]

    /// Reads a capture of any format. If it has several adapters, the first one with packets is used.
    init(contentsOf path: String) throws(ScriptError) {
        switch readFile(path) {
        case .success(let octets):
            do throws(CaptureReadingError) {
                records = try CapturePlayer.records(in: octets)
            } catch {
                throw ScriptError(file: path, line: 0, message: "\(error)")
            }
        case .failure(let error):
            throw ScriptError(file: path, line: 0, message: "cannot be read: \(error)")
        }
    }

    private static func records(in octets: [UInt8]) throws(CaptureReadingError) -> [Record] {
        var records: [Record] = []
        var adapter: UInt16?
        var reader = CaptureReader()
        reader.append(octets.rawSpan)
        reader.finish()
        while try reader.advance() == .record, let record = reader.record {
            guard case .packet(let kind, let direction, let bytes) = record.content, record.cutLength == 0,
                let direction = direction ?? kind.onlyDirection, adapter == nil || adapter == record.adapterIndex
            else { continue }
            adapter = record.adapterIndex
            let packet = [kind.rawValue] + [UInt8](copying: bytes)
            let number = Int(clamping: record.number)
            records.append(Record(number: number, isFromHost: direction == .hostToController, packet: packet))
        }
        return records
    }

    /// Plays the whole capture. Commands are compared in order, and so are the packets of each link.
    func play(on exchange: Exchange, _ allowances: Allowances) throws(Difference) {
        exchange.completesPackets = false
        var rest = records[...]
        while let record = rest.first {
            guard record.isFromHost else {
                try exchange.send(record.packet)
                rest.removeFirst()
                continue
            }
            var expected = Array(rest.prefix { $0.isFromHost })
            rest = rest.dropFirst(expected.count)
            while let next = expected.first {
                let packet = try self.next(on: exchange, instead: next)
                // Commands and each link's data are separate streams. The host may interleave them in any order.
                guard let index = expected.firstIndex(where: { $0.packet.stream == packet.stream }) else {
                    throw difference(next, packet, allowances)
                }
                let record = expected.remove(at: index)
                guard record.pattern(allowances).difference(to: packet) == nil else {
                    throw difference(record, packet, allowances)
                }
            }
        }
    }

    private func next(on exchange: Exchange, instead record: Record) throws(Difference) -> [UInt8] {
        let deadline = ContinuousClock.now + exchange.patience
        while true {
            if case .packet(let packet) = try exchange.nextMessage(asPacket: true) { return packet }
            let awaited = ["expected  packet \(record.number): \(Description.packet(record.packet))"]
            if let loss = exchange.loss {
                throw Difference(
                    "the host has closed its HCI socket (\(loss))",
                    details: awaited + exchange.hostDetails
                )
            }
            guard try exchange.wait(until: deadline) else {
                throw Difference(
                    "no further packet arrived in \(exchange.patience)",
                    details: awaited + exchange.hostDetails
                )
            }
        }
    }

    private func difference(_ record: Record, _ packet: [UInt8], _ allowances: Allowances) -> Difference {
        var difference = Difference(
            expected: ("Packet", record.pattern(allowances)),
            got: ("Packet " + Description.hexadecimal(packet), packet)
        )
        difference.details += [
            "          \(Description.packet(record.packet)) was recorded as packet \(record.number)",
            "          \(Description.packet(packet)) has come",
        ]
        return difference
    }
}

extension CapturePlayer.Record {
    /// The pattern for the packet, with wildcards for the allowed differences.
    fileprivate func pattern(_ allowances: CapturePlayer.Allowances) -> Pattern {
        .exact(packet, wildcards: wildcards(allowances))
    }

    private func wildcards(_ allowances: CapturePlayer.Allowances) -> Range<Int> {
        let none = 0..<0
        let end = packet.count
        if packet.first == 1 {
            let opcode = packet.number(at: 1)
            if allowances.commands.contains(opcode) { return min(4, end)..<end }
            switch opcode {
            // LE Set Random Address; LE Set Advertising Set Random Address, after the handle.
            case 0x2005 where allowances.addresses: return min(4, end)..<end
            case 0x2035 where allowances.addresses: return min(5, end)..<end
            // LE Enable Encryption and LE Long Term Key Request Reply, after the connection handle.
            case 0x2019 where allowances.randoms, 0x201A where allowances.randoms: return min(6, end)..<end
            default: return none
            }
        }
        // A PDU of the Security Manager except requests, responses and failures (Vol 3, Part H, 3.3).
        guard allowances.randoms, packet.first == 2, packet.count > 9, packet.number(at: 7) == 6,
            [0x03, 0x04, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0C, 0x0D].contains(packet[9])
        else { return none }
        return 10..<end
    }
}

extension [UInt8] {
    /// The stream of a packet, within which order counts: commands, or the data of one link.
    fileprivate var stream: UInt16 { first == 2 ? number(at: 1) & 0x0FFF : 0xFFFF }
}
