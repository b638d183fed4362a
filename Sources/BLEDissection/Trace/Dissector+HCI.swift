import BLEByteCoding
import BLECapture
import BLEHCI
import BluetoothTypes

enum HCINames {
    static let opcode = FieldName("Opcode")
    static let code = FieldName("Code")
    static let subevent = FieldName("Subevent")
    static let handle = FieldName("Handle")
    static let flags = FieldName("Flags")
    static let length = FieldName("Length")
    static let boundary = FieldName("Boundary")
    static let broadcast = FieldName("Broadcast")
    static let commandPackets = FieldName("Num HCI Command Packets")
    static let commandOpcode = FieldName("Command Opcode")
    static let status = FieldName("Status")
    static let returned = FieldName("Returned")
}

extension Dissector {
    func dissectCommand(
        _ bytes: RawSpan,
        _ adapter: AdapterState,
        _ isDescribed: Bool,
        _ packet: inout PacketDescription
    ) {
        var reader = ByteReader(bytes)
        do throws(PacketDecodingError) {
            let header = try CommandHeader(decoding: &reader)
            adapter.command(header.opcode.rawValue, index: packet.index, time: packet.time)
            let parameters = try reader.readBytes(count: Int(header.parameterTotalLength))
            try reader.requireEnd()
            noteLink(ofCommand: header.opcode, parameters, adapter, &packet)
            guard isDescribed else { return }
            let opcode = header.opcode
            var layer = Layer(
                .command,
                opcode.title,
                head: [Field(HCINames.opcode, .hexadecimal(UInt64(opcode.rawValue), digits: 4))]
            )
            describe(parameters, CommandLayouts.parameters[opcode.rawValue], &layer, &packet)
            packet.layers.append(layer)
        } catch {
            malformed(.command, "Command", bytes, error, isDescribed, &packet)
        }
    }

    func dissectEvent(
        _ bytes: RawSpan,
        _ adapter: AdapterState,
        _ isDescribed: Bool,
        _ packet: inout PacketDescription
    ) {
        do throws(PacketDecodingError) {
            var reader = ByteReader(bytes)
            let code = try reader.readUInt8()
            let parameters = try reader.readBytes(count: Int(try reader.readUInt8()))
            try reader.requireEnd()
            var failure: PacketDecodingError?
            do throws(PacketDecodingError) {
                try follow(Event(decoding: bytes), adapter, &packet)
            } catch {
                failure = error
                if case .trailingBytes(let count) = error { followPrefix(of: bytes, without: count, adapter, &packet) }
            }
            if code == 0x03 { followClassic(parameters, adapter, &packet) }
            if isDescribed { describeEvent(code, parameters, adapter, &packet) }
            if let failure, packet.malformed.isEmpty {
                packet.malformed.append(.init(layer: .event, reason: "\(failure)"))
            }
        } catch {
            malformed(.event, "Event", bytes, error, isDescribed, &packet)
        }
    }

    /// Follows an event with excess bytes without these bytes, like a host that ignores them.
    private func followPrefix(
        of bytes: RawSpan,
        without count: Int,
        _ adapter: AdapterState,
        _ packet: inout PacketDescription
    ) {
        var event = [UInt8](copying: bytes)
        guard count > 0, count <= event.count - 2, let excess = UInt8(exactly: count) else { return }
        event.removeLast(count)
        event[1] -= excess
        // Its other parameters may be malformed too. The event is then not followed.
        try? follow(Event(decoding: event.rawSpan), adapter, &packet)
    }

    private func malformed(
        _ kind: Layer.Kind,
        _ title: String,
        _ bytes: RawSpan,
        _ error: PacketDecodingError,
        _ isDescribed: Bool,
        _ packet: inout PacketDescription
    ) {
        packet.malformed.append(.init(layer: kind, reason: "\(error)"))
        guard isDescribed else { return }
        var layer = Layer(kind, title)
        layer.fields.append(Field(.data, .octets([UInt8](copying: bytes))))
        packet.layers.append(layer)
    }

    /// Adds parameters to a layer by their layout, or as bytes without one.
    private func describe(
        _ parameters: RawSpan,
        _ layout: ParameterLayout?,
        _ layer: inout Layer,
        _ packet: inout PacketDescription
    ) {
        guard let layout else {
            if !parameters.isEmpty {
                layer.fields.append(Field(.parameters, .octets([UInt8](copying: parameters)), isInLine: true))
            }
            return
        }
        var reader = ByteReader(parameters)
        let error =
            layout.isFailure(parameters)
            ? layout.readFailure(&reader, into: &layer.fields) : layout.read(&reader, into: &layer.fields)
        if let error {
            packet.malformed.append(.init(layer: layer.kind, reason: "\(error)"))
            if !reader.isAtEnd {
                layer.fields.append(Field(.excess, .octets([UInt8](copying: reader.readRemaining()))))
            }
        }
    }

    private func describeEvent(
        _ code: UInt8,
        _ parameters: RawSpan,
        _ adapter: AdapterState,
        _ packet: inout PacketDescription
    ) {
        var layer = Layer(.event, "", head: [Field(HCINames.code, .hexadecimal(UInt64(code), digits: 2))])
        switch code {
        case Event.leMetaCode:
            guard let subevent = parameters[checked: 0] else {
                layer.title = Event.name(code: code)
                packet.layers.append(layer)
                return
            }
            layer.title = Event.name(code: code, subeventCode: subevent)
            layer.head.append(Field(HCINames.subevent, .hexadecimal(UInt64(subevent), digits: 2)))
            describe(parameters.extracting(droppingFirst: 1), EventLayouts.leEvents[UInt16(subevent)], &layer, &packet)
        case CommandComplete.code:
            layer.title = Event.name(code: code)
            describeCommandComplete(parameters, &layer, &packet)
        default:
            layer.title = Event.name(code: code)
            describe(parameters, EventLayouts.events[UInt16(code)], &layer, &packet)
            if code == CommandStatus.code,
                let index = layer.fields.firstIndex(where: { $0.name.key == HCINames.commandOpcode.key }),
                case .hexadecimal(let opcode, _) = layer.fields[index].value
            {
                layer.fields[index] = Field(
                    layer.fields[index].name,
                    .named(opcode, HCIOpcode(rawValue: UInt16(truncatingIfNeeded: opcode)).knownTitle),
                    isInLine: true
                )
            }
        }
        packet.layers.append(layer)
    }

    private func describeCommandComplete(
        _ parameters: RawSpan,
        _ layer: inout Layer,
        _ packet: inout PacketDescription
    ) {
        var reader = ByteReader(parameters)
        do throws(PacketDecodingError) {
            let count = try reader.readUInt8()
            let opcode = HCIOpcode(rawValue: try reader.readUInt16())
            layer.fields.append(Field(HCINames.commandPackets, .number(Int64(count))))
            layer.fields.append(
                Field(HCINames.commandOpcode, .named(UInt64(opcode.rawValue), opcode.knownTitle), isInLine: true)
            )
            if reader.isAtEnd { return }
            let layout = CommandLayouts.returns(of: opcode.rawValue)
            if layout == nil, opcode.group == 0x3F {
                // The return parameters of a vendor command need not begin with a status, although most do.
                let rest = [UInt8](copying: reader.readRemaining())
                layer.fields.append(Field(HCINames.returned, .octets(rest), isInLine: true))
                return
            }
            let status = try reader.readUInt8()
            layer.fields.append(
                Field(HCINames.status, .named(UInt64(status), NamedValues.errors[UInt64(status)]), isInLine: true)
            )
            // A controller that refuses a command may return the status alone (Vol 4, Part E, 4.5).
            if reader.isAtEnd, status != 0 || layout == nil { return }
            var returned: [Field] = []
            if let layout {
                let error =
                    status == 0 ? layout.read(&reader, into: &returned) : layout.readFailure(&reader, into: &returned)
                if let error {
                    packet.malformed.append(.init(layer: .event, reason: "\(error)"))
                }
            } else {
                returned.append(Field(.data, .octets([UInt8](copying: reader.readRemaining())), isInLine: true))
            }
            if !returned.isEmpty { layer.fields.append(Field(HCINames.returned, .fields(returned), isInLine: true)) }
        } catch {
            packet.malformed.append(.init(layer: .event, reason: "\(error)"))
        }
    }
}

extension HCIOpcode {
    /// The command's name, or the number of a vendor command.
    var title: String { knownTitle ?? "Command 0x" + hexadecimalDigits(rawValue, count: 4) }

    var knownTitle: String? {
        if rawValue == 0 { return "none" }
        if group == 0x3F { return "Vendor Command 0x" + hexadecimalDigits(rawValue, count: 4) }
        let text = description
        return text.hasPrefix("command 0x") ? nil : text
    }
}
