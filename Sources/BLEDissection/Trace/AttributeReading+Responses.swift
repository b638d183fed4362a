import BLEATT
import BLEByteCoding
import BluetoothTypes

extension AttributeReading {
    mutating func readResponse(_ opcode: ATTOpcode, _ pdu: RawSpan) throws(PacketDecodingError) {
        switch opcode {
        case .errorResponse: try readError(pdu)
        case .exchangeMTUResponse:
            let response = try ExchangeMTUResponse(decoding: pdu)
            add(AttributeNames.mtu, .number(Int64(response.serverReceiveMTU)), isInLine: true)
        case .findInformationResponse:
            let response = try FindInformationResponse(decoding: pdu)
            add(AttributeNames.format, .number(Int64(response.format.rawValue)))
            var entries = response.entries
            var list: [Value] = []
            while let entry = entries.next() {
                telling.note(entry.handle.rawValue, type: entry.type)
                if isDescribed { list.append(.fields(attribute(entry.handle.rawValue, in: telling))) }
            }
            add(AttributeNames.attributes, .list(list), isInLine: true)
        case .findByTypeValueResponse: try readFound(pdu)
        case .readByTypeResponse: try readTyped(pdu)
        case .readByGroupTypeResponse: try readGroups(pdu)
        case .readResponse: try addRequested(ReadResponse(decoding: pdu).value, isWhole: true)
        case .readBlobResponse: try addRequested(ReadBlobResponse(decoding: pdu).value, isWhole: false)
        case .readMultipleResponse:
            if case .handles(let handles) = request?.subject, isDescribed { addAttributes(handles, in: telling) }
            add(AttributeNames.value, .octets([UInt8](copying: pdu.extracting(droppingFirst: 1))), isInLine: true)
        case .readMultipleVariableResponse: try readVariable(pdu)
        case .prepareWriteResponse:
            let response = try PrepareWriteResponse(decoding: pdu)
            addAttribute(response.handle.rawValue, in: telling)
            add(AttributeNames.offset, .number(Int64(response.offset)), isInLine: true)
            add(AttributeNames.value, .octets([UInt8](copying: response.partValue)), isInLine: true)
        case .writeResponse:
            _ = try WriteResponse(decoding: pdu)
            if case .handle(let handle) = request?.subject { addAttribute(handle, in: telling) }
        case .executeWriteResponse: _ = try ExecuteWriteResponse(decoding: pdu)
        default: break
        }
    }

    private mutating func readError(_ pdu: RawSpan) throws(PacketDecodingError) {
        let response = try ErrorResponse(decoding: pdu)
        let code = UInt64(response.error.rawValue)
        add(
            AttributeNames.request,
            .named(UInt64(response.requestOpcode), ATTOpcode(rawValue: response.requestOpcode)?.title),
            isInLine: true
        )
        addAttribute(response.handle.rawValue, in: telling)
        add(AttributeNames.error, .named(code, NamedValues.attErrors[code]), isInLine: true)
        // Every discovery ends with this error, so it is not counted.
        if response.error != .attributeNotFound { failure = "\(response.error)" }
    }

    private mutating func addRequested(_ value: RawSpan, isWhole: Bool) {
        var type: BluetoothUUID?
        if case .handle(let handle) = request?.subject {
            addAttribute(handle, in: telling)
            type = telling[handle]?.type
        }
        let octets = isDescribed ? [UInt8](copying: value) : []
        addValue(octets, type: isWhole ? type : nil)
    }

    private mutating func readFound(_ pdu: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(pdu)
        try reader.skip(1)
        var list: [Value] = []
        while !reader.isAtEnd {
            let handle = try reader.readUInt16()
            let end = try reader.readUInt16()
            if case .type(let type, let value) = request?.subject, handle <= end,
                let uuid = try? BluetoothUUID(decoding: value.rawSpan)
            {
                telling.noteService(handle...end, uuid: uuid, type: type)
            }
            guard isDescribed else { continue }
            var entry = attribute(handle, in: telling)
            entry.append(Field(AttributeNames.end, .hexadecimal(UInt64(end), digits: 4), isInLine: true))
            list.append(.fields(entry))
        }
        add(AttributeNames.attributes, .list(list), isInLine: true)
    }

    private mutating func readTyped(_ pdu: RawSpan) throws(PacketDecodingError) {
        let response = try ReadByTypeResponse(decoding: pdu)
        var type: BluetoothUUID?
        if case .type(let uuid, _) = request?.subject { type = uuid }
        add(AttributeNames.length, .number(Int64(response.length)))
        var entries = response.entries
        var list: [Value] = []
        while let entry = entries.next() {
            let handle = entry.handle.rawValue
            if type == .characteristic {
                telling.noteCharacteristic(declaration: handle, value: entry.value)
            } else if let type {
                telling.note(handle, type: type)
            }
            guard isDescribed else { continue }
            var fields = attribute(handle, in: telling)
            fields += interpretation([UInt8](copying: entry.value), type: type)
            list.append(.fields(fields))
        }
        add(AttributeNames.attributes, .list(list), isInLine: true)
    }

    private mutating func readGroups(_ pdu: RawSpan) throws(PacketDecodingError) {
        let response = try ReadByGroupTypeResponse(decoding: pdu)
        var type = BluetoothUUID.primaryService
        if case .type(let uuid, _) = request?.subject { type = uuid }
        add(AttributeNames.length, .number(Int64(response.length)))
        var entries = response.entries
        var list: [Value] = []
        while let entry = entries.next() {
            let handle = entry.handle.rawValue
            let end = entry.endGroupHandle.rawValue
            if handle <= end, let uuid = try? BluetoothUUID(decoding: entry.value) {
                telling.noteService(handle...end, uuid: uuid, type: type)
            }
            guard isDescribed else { continue }
            list.append(
                .fields(
                    [
                        Field(AttributeNames.handle, .hexadecimal(UInt64(handle), digits: 4), isInLine: true),
                        Field(AttributeNames.end, .hexadecimal(UInt64(end), digits: 4), isInLine: true),
                    ] + interpretation([UInt8](copying: entry.value), type: type)
                )
            )
        }
        add(AttributeNames.attributes, .list(list), isInLine: true)
    }

    private mutating func readVariable(_ pdu: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(pdu)
        try reader.skip(1)
        var handles: [UInt16] = []
        if case .handles(let requested) = request?.subject { handles = requested }
        var list: [Value] = []
        while !reader.isAtEnd {
            let length = Int(try reader.readUInt16())
            // The last value may be truncated to fit the PDU (Vol 3, Part F, 3.4.4.12).
            let value = try reader.readBytes(count: min(length, reader.remaining))
            guard isDescribed else { continue }
            var fields = list.count < handles.count ? attribute(handles[list.count], in: telling) : []
            fields.append(Field(AttributeNames.length, .number(Int64(length))))
            fields.append(Field(AttributeNames.value, .octets([UInt8](copying: value)), isInLine: true))
            list.append(.fields(fields))
        }
        add(AttributeNames.attributes, .list(list), isInLine: true)
    }

    mutating func readNotification(_ opcode: ATTOpcode, _ pdu: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(pdu)
        try reader.skip(1)
        guard opcode == .multipleHandleValueNotification else {
            let handle = try reader.readUInt16()
            procedure = opcode.kind == .indication ? "Indication" : "Notification"
            guard isDescribed else { return }
            addAttribute(handle, in: telling)
            addValue([UInt8](copying: reader.readRemaining()), type: telling[handle]?.type)
            return
        }
        procedure = "Multiple Notification"
        var list: [Value] = []
        while !reader.isAtEnd {
            let handle = try reader.readUInt16()
            let length = Int(try reader.readUInt16())
            let value = [UInt8](copying: try reader.readBytes(count: length))
            guard isDescribed else { continue }
            var fields = attribute(handle, in: telling)
            fields.append(Field(AttributeNames.value, .octets(value), isInLine: true))
            list.append(.fields(fields))
        }
        add(AttributeNames.attributes, .list(list), isInLine: true)
    }
}
