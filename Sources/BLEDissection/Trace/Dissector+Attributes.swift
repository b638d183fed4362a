import BLEATT
import BLEByteCoding
import BLECapture
import BluetoothTypes

extension Dissector {
    func dissectAttribute(
        _ pdu: RawSpan,
        _ direction: CaptureDirection,
        _ link: LinkState,
        _ bearer: AttributeBearerState,
        _ isDescribed: Bool,
        _ packet: inout PacketDescription
    ) {
        guard let code = pdu[checked: 0] else {
            packet.malformed.append(.init(layer: .att, reason: "a PDU without an opcode"))
            return
        }
        let opcode = ATTOpcode(rawValue: code)
        var reading = AttributeReading(
            direction: direction,
            link: link,
            request: request(code, opcode, pdu, direction, bearer, &packet),
            isDescribed: isDescribed
        )
        var subject = AttributeBearerState.Subject.none
        do throws(PacketDecodingError) {
            if let opcode {
                subject = try reading.read(opcode, pdu)
            } else {
                packet.malformed.append(.init(layer: .att, reason: "an unknown opcode"))
                reading.add(.data, .octets([UInt8](copying: pdu.extracting(droppingFirst: 1))))
            }
        } catch {
            packet.malformed.append(.init(layer: .att, reason: "\(error)"))
            reading.add(.data, .octets([UInt8](copying: pdu.extracting(droppingFirst: 1))))
        }
        if opcode?.kind == .request {
            bearer.open(.init(opcode: code, index: packet.index, time: packet.time, subject: subject), direction)
        } else if opcode?.kind == .indication {
            bearer.openIndication(.init(opcode: code, index: packet.index, time: packet.time), direction)
        }
        if let name = reading.procedure { withSummary { $0.noteProcedure(name) } }
        if let error = reading.failure {
            withSummary { $0.noteError(error, in: reading.request.map { "ATT \(title($0.opcode))" } ?? "ATT") }
        }
        guard isDescribed else { return }
        var layer = Layer(
            .att,
            title(code),
            head: [Field(AttributeNames.opcode, .hexadecimal(UInt64(code), digits: 2))]
        )
        layer.fields = reading.fields
        packet.layers.append(layer)
    }

    /// Returns the request that a response answers.
    private func request(
        _ code: UInt8,
        _ opcode: ATTOpcode?,
        _ pdu: RawSpan,
        _ direction: CaptureDirection,
        _ bearer: AttributeBearerState,
        _ packet: inout PacketDescription
    ) -> AttributeBearerState.Request? {
        let request: AttributeBearerState.Request? =
            switch opcode {
            case .errorResponse: pdu[checked: 1].flatMap { bearer.close($0, direction) }
            case .handleValueConfirmation: bearer.closeIndication(direction)
            case .some(let opcode) where opcode.kind == .response: bearer.close(code &- 1, direction)
            default: nil
            }
        guard let request else { return nil }
        let time = packet.time &- request.time
        packet.answered = .init(index: request.index, microseconds: time)
        withSummary { $0.requestTook(title(request.opcode), microseconds: time) }
        return request
    }

    private func title(_ code: UInt8) -> String {
        ATTOpcode(rawValue: code)?.title ?? "PDU 0x" + hexadecimalDigits(code, count: 2)
    }
}
