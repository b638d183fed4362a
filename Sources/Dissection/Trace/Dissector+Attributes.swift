import ATT
import BluetoothTypes
import ByteCoding
import Capture

private enum Names {
    static let opcode = FieldName("Opcode")
    static let handle = FieldName("Handle")
    static let handles = FieldName("Handles")
    static let starting = FieldName("Starting Handle")
    static let ending = FieldName("Ending Handle")
    static let end = FieldName("Group End Handle")
    static let uuid = FieldName("UUID")
    static let service = FieldName("Service")
    static let characteristic = FieldName("Characteristic")
    static let type = FieldName("Attribute Type")
    static let value = FieldName("Value")
    static let offset = FieldName("Offset")
    static let mtu = FieldName("MTU")
    static let attributes = FieldName("Attributes")
    static let request = FieldName("Request Opcode")
    static let error = FieldName("Error Code")
    static let flags = FieldName("Flags")
    static let format = FieldName("Format")
    static let length = FieldName("Length")
    static let properties = FieldName("Properties")
    static let valueHandle = FieldName("Value Handle")
    static let configuration = FieldName("Configuration")
    static let signature = FieldName("Signature")
    static let counter = FieldName("Sign Counter")
}

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
        let opcode = Opcode(rawValue: code)
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
            head: [Field(Names.opcode, .hexadecimal(UInt64(code), digits: 2))]
        )
        layer.fields = reading.fields
        packet.layers.append(layer)
    }

    /// The request that a response answers.
    private func request(
        _ code: UInt8,
        _ opcode: Opcode?,
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
        Opcode(rawValue: code)?.title ?? "PDU 0x" + hexadecimalText(UInt64(code), digits: 2)
    }
}

/// Reads one ATT PDU: what it says becomes fields and is noted in the database of the server that it is about.
private struct AttributeReading {
    let direction: CaptureDirection
    let link: LinkState
    let request: AttributeBearerState.Request?
    let isDescribed: Bool
    var fields: [Field] = []
    /// What the PDU begins, for the summary.
    var procedure: String?
    /// The error that the PDU tells.
    var failure: String?

    init(
        direction: CaptureDirection,
        link: LinkState,
        request: AttributeBearerState.Request?,
        isDescribed: Bool
    ) {
        self.direction = direction
        self.link = link
        self.request = request
        self.isDescribed = isDescribed
    }

    mutating func add(_ name: FieldName, _ value: @autoclosure () -> Value, isInLine: Bool = false) {
        if isDescribed { fields.append(Field(name, value(), isInLine: isInLine)) }
    }

    /// The database of the server that a request in this direction asks.
    private var asked: ObservedDatabase { link.database(ofServerSending: direction.opposite) }
    /// The database of the server that sends this PDU.
    private var telling: ObservedDatabase { link.database(ofServerSending: direction) }

    /// What a request is about, which its response does not say.
    mutating func read(_ opcode: Opcode, _ pdu: RawSpan) throws(PacketDecodingError) -> AttributeBearerState.Subject {
        switch opcode.kind {
        case .request, .command: return try readRequest(opcode, pdu)
        case .response:
            try readResponse(opcode, pdu)
        case .notification, .indication:
            try readNotification(opcode, pdu)
        case .confirmation:
            _ = try HandleValueConfirmation(decoding: pdu)
        }
        return .none
    }

    // MARK: Requests

    private mutating func readRequest(
        _ opcode: Opcode,
        _ pdu: RawSpan
    ) throws(PacketDecodingError) -> AttributeBearerState.Subject {
        switch opcode {
        case .exchangeMTURequest:
            let request = try ExchangeMTURequest(decoding: pdu)
            procedure = "Exchange MTU"
            add(Names.mtu, .number(Int64(request.clientReceiveMTU)), isInLine: true)
        case .findInformationRequest:
            addRange(try FindInformationRequest(decoding: pdu).range)
            procedure = "Discover Descriptors"
        case .findByTypeValueRequest:
            let request = try FindByTypeValueRequest(decoding: pdu)
            addRange(request.range)
            let uuid = BluetoothUUID(request.type)
            add(Names.type, .uuid(uuid), isInLine: true)
            let value = [UInt8](copying: request.value)
            addValue(value, type: uuid)
            procedure = "Discover Service by UUID"
            return .type(uuid, value: value)
        case .readByTypeRequest:
            let request = try ReadByTypeRequest(decoding: pdu)
            addRange(request.range)
            add(Names.type, .uuid(request.type), isInLine: true)
            procedure =
                request.type == .characteristic
                ? "Discover Characteristics" : request.type == .include ? "Find Included Services" : "Read by UUID"
            return .type(request.type)
        case .readByGroupTypeRequest:
            let request = try ReadByGroupTypeRequest(decoding: pdu)
            addRange(request.range)
            add(Names.type, .uuid(request.groupType), isInLine: true)
            procedure = "Discover Services"
            return .type(request.groupType)
        case .readRequest:
            procedure = "Read"
            return about(try ReadRequest(decoding: pdu).handle)
        case .readBlobRequest:
            let request = try ReadBlobRequest(decoding: pdu)
            let subject = about(request.handle)
            add(Names.offset, .number(Int64(request.offset)), isInLine: true)
            procedure = "Read Long"
            return subject
        case .readMultipleRequest, .readMultipleVariableRequest:
            return try readMultiple(pdu)
        case .writeRequest:
            let request = try WriteRequest(decoding: pdu)
            procedure = "Write"
            return write(request.handle, request.value)
        case .writeCommand:
            let command = try WriteCommand(decoding: pdu)
            procedure = "Write Without Response"
            return write(command.handle, command.value)
        case .signedWriteCommand:
            return try readSignedWrite(pdu)
        case .prepareWriteRequest:
            let request = try PrepareWriteRequest(decoding: pdu)
            let subject = about(request.handle)
            add(Names.offset, .number(Int64(request.offset)), isInLine: true)
            add(Names.value, .octets([UInt8](copying: request.partValue)), isInLine: true)
            procedure = "Prepare Write"
            return subject
        case .executeWriteRequest:
            var reader = ByteReader(pdu)
            try reader.skip(1)
            let flags = try reader.readUInt8()
            try reader.requireEnd()
            procedure = "Execute Write"
            add(Names.flags, .named(UInt64(flags), NamedValues.all["execute"]?[UInt64(flags)]), isInLine: true)
        default: break
        }
        return .none
    }

    private mutating func readMultiple(_ pdu: RawSpan) throws(PacketDecodingError) -> AttributeBearerState.Subject {
        var reader = ByteReader(pdu)
        try reader.skip(1)
        var handles: [UInt16] = []
        while !reader.isAtEnd { handles.append(try reader.readUInt16()) }
        procedure = "Read Multiple"
        if isDescribed { addAttributes(handles, in: asked) }
        return .handles(handles)
    }

    private mutating func readSignedWrite(_ pdu: RawSpan) throws(PacketDecodingError) -> AttributeBearerState.Subject {
        var reader = ByteReader(pdu)
        try reader.skip(1)
        let handle = AttributeHandle(try reader.readUInt16())
        let value = try reader.readBytes(count: reader.remaining - 12)
        procedure = "Signed Write"
        let subject = write(handle, value)
        let counter = Int64(try reader.readUInt32())
        add(Names.counter, .number(counter))
        add(Names.signature, .octets([UInt8](copying: reader.readRemaining())))
        return subject
    }

    private mutating func write(_ handle: AttributeHandle, _ value: RawSpan) -> AttributeBearerState.Subject {
        let subject = about(handle)
        addValue([UInt8](copying: value), type: asked[handle.rawValue]?.type)
        return subject
    }

    /// Says which attribute a request is about.
    private mutating func about(_ handle: AttributeHandle) -> AttributeBearerState.Subject {
        if isDescribed { fields += attribute(handle.rawValue, in: asked) }
        return .handle(handle.rawValue)
    }

    // MARK: Responses

    private mutating func readResponse(_ opcode: Opcode, _ pdu: RawSpan) throws(PacketDecodingError) {
        switch opcode {
        case .errorResponse: try readError(pdu)
        case .exchangeMTUResponse:
            let response = try ExchangeMTUResponse(decoding: pdu)
            add(Names.mtu, .number(Int64(response.serverReceiveMTU)), isInLine: true)
        case .findInformationResponse:
            let response = try FindInformationResponse(decoding: pdu)
            add(Names.format, .number(Int64(response.format.rawValue)))
            var entries = response.entries
            var list: [Value] = []
            while let entry = entries.next() {
                telling.note(entry.handle.rawValue, type: entry.type)
                if isDescribed { list.append(.fields(attribute(entry.handle.rawValue, in: telling))) }
            }
            add(Names.attributes, .list(list), isInLine: true)
        case .findByTypeValueResponse: try readFound(pdu)
        case .readByTypeResponse: try readTyped(pdu)
        case .readByGroupTypeResponse: try readGroups(pdu)
        case .readResponse: try addRequested(ReadResponse(decoding: pdu).value, isWhole: true)
        case .readBlobResponse: try addRequested(ReadBlobResponse(decoding: pdu).value, isWhole: false)
        case .readMultipleResponse:
            if case .handles(let handles) = request?.subject, isDescribed { addAttributes(handles, in: telling) }
            add(Names.value, .octets([UInt8](copying: pdu.extracting(droppingFirst: 1))), isInLine: true)
        case .readMultipleVariableResponse: try readVariable(pdu)
        case .prepareWriteResponse:
            let response = try PrepareWriteResponse(decoding: pdu)
            if isDescribed { fields += attribute(response.handle.rawValue, in: telling) }
            add(Names.offset, .number(Int64(response.offset)), isInLine: true)
            add(Names.value, .octets([UInt8](copying: response.partValue)), isInLine: true)
        case .writeResponse:
            _ = try WriteResponse(decoding: pdu)
            if case .handle(let handle) = request?.subject, isDescribed { fields += attribute(handle, in: telling) }
        case .executeWriteResponse: _ = try ExecuteWriteResponse(decoding: pdu)
        default: break
        }
    }

    private mutating func readError(_ pdu: RawSpan) throws(PacketDecodingError) {
        let response = try ErrorResponse(decoding: pdu)
        let code = UInt64(response.error.rawValue)
        add(
            Names.request,
            .named(UInt64(response.requestOpcode), Opcode(rawValue: response.requestOpcode)?.title),
            isInLine: true
        )
        if isDescribed { fields += attribute(response.handle.rawValue, in: telling) }
        add(Names.error, .named(code, NamedValues.attErrors[code]), isInLine: true)
        // How each discovery ends is no error.
        if response.error != .attributeNotFound { failure = "\(response.error)" }
    }

    private mutating func addRequested(_ value: RawSpan, isWhole: Bool) {
        var type: BluetoothUUID?
        if case .handle(let handle) = request?.subject {
            if isDescribed { fields += attribute(handle, in: telling) }
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
            entry.append(Field(Names.end, .hexadecimal(UInt64(end), digits: 4), isInLine: true))
            list.append(.fields(entry))
        }
        add(Names.attributes, .list(list), isInLine: true)
    }

    private mutating func readTyped(_ pdu: RawSpan) throws(PacketDecodingError) {
        let response = try ReadByTypeResponse(decoding: pdu)
        var type: BluetoothUUID?
        if case .type(let uuid, _) = request?.subject { type = uuid }
        add(Names.length, .number(Int64(response.length)))
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
        add(Names.attributes, .list(list), isInLine: true)
    }

    private mutating func readGroups(_ pdu: RawSpan) throws(PacketDecodingError) {
        let response = try ReadByGroupTypeResponse(decoding: pdu)
        var type = BluetoothUUID.primaryService
        if case .type(let uuid, _) = request?.subject { type = uuid }
        add(Names.length, .number(Int64(response.length)))
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
                        Field(Names.handle, .hexadecimal(UInt64(handle), digits: 4), isInLine: true),
                        Field(Names.end, .hexadecimal(UInt64(end), digits: 4), isInLine: true),
                    ] + interpretation([UInt8](copying: entry.value), type: type)
                )
            )
        }
        add(Names.attributes, .list(list), isInLine: true)
    }

    private mutating func readVariable(_ pdu: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(pdu)
        try reader.skip(1)
        var handles: [UInt16] = []
        if case .handles(let requested) = request?.subject { handles = requested }
        var list: [Value] = []
        while !reader.isAtEnd {
            let length = Int(try reader.readUInt16())
            // The last value may be cut to what fits (Vol 3, Part F, 3.4.4.12).
            let value = try reader.readBytes(count: min(length, reader.remaining))
            guard isDescribed else { continue }
            var fields = list.count < handles.count ? attribute(handles[list.count], in: telling) : []
            fields.append(Field(Names.length, .number(Int64(length))))
            fields.append(Field(Names.value, .octets([UInt8](copying: value)), isInLine: true))
            list.append(.fields(fields))
        }
        add(Names.attributes, .list(list), isInLine: true)
    }

    // MARK: Notifications

    private mutating func readNotification(_ opcode: Opcode, _ pdu: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(pdu)
        try reader.skip(1)
        guard opcode == .multipleHandleValueNotification else {
            let handle = try reader.readUInt16()
            procedure = opcode.kind == .indication ? "Indication" : "Notification"
            guard isDescribed else { return }
            fields += attribute(handle, in: telling)
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
            fields.append(Field(Names.value, .octets(value), isInLine: true))
            list.append(.fields(fields))
        }
        add(Names.attributes, .list(list), isInLine: true)
    }

    // MARK: Fields

    private mutating func addRange(_ range: HandleRange) {
        add(Names.starting, .hexadecimal(UInt64(range.start.rawValue), digits: 4), isInLine: true)
        add(Names.ending, .hexadecimal(UInt64(range.end.rawValue), digits: 4), isInLine: true)
    }

    private mutating func addAttributes(_ handles: [UInt16], in database: ObservedDatabase) {
        let list = handles.map { Value.fields(attribute($0, in: database)) }
        add(Names.attributes, .list(list), isInLine: true)
    }

    private mutating func addValue(_ value: [UInt8], type: BluetoothUUID?) {
        if isDescribed { fields += interpretation(value, type: type) }
    }

    /// An attribute by its handle and what is known of it.
    private func attribute(_ handle: UInt16, in database: ObservedDatabase) -> [Field] {
        var fields = [Field(Names.handle, .hexadecimal(UInt64(handle), digits: 4), isInLine: true)]
        if let attribute = database[handle] {
            fields.append(Field(Names.uuid, .uuid(attribute.type), isInLine: true))
            if let characteristic = attribute.characteristic {
                fields.append(Field(Names.characteristic, .uuid(characteristic), isInLine: true))
            }
        }
        if let service = database.service(of: handle) { fields.append(Field(Names.service, .uuid(service))) }
        return fields
    }

    /// A value, and what it says where its type is one that every stack knows.
    private func interpretation(_ value: [UInt8], type: BluetoothUUID?) -> [Field] {
        var fields = [Field(Names.value, .octets(value), isInLine: true)]
        var reader = ByteReader(value.rawSpan)
        switch type {
        case .primaryService?, .secondaryService?:
            if let uuid = try? BluetoothUUID(decoding: value.rawSpan) {
                fields[0] = Field(Names.value, .octets(value))
                fields.append(Field(Names.service, .uuid(uuid), isInLine: true))
            }
        case .characteristic?:
            guard let properties = try? reader.readUInt8(), let handle = try? reader.readUInt16(),
                let uuid = try? BluetoothUUID(decoding: reader.readRemaining())
            else { break }
            fields[0] = Field(Names.value, .octets(value))
            fields.append(Field(Names.properties, .flags(UInt64(properties), .characteristicProperties)))
            fields.append(Field(Names.valueHandle, .hexadecimal(UInt64(handle), digits: 4), isInLine: true))
            fields.append(Field(Names.characteristic, .uuid(uuid), isInLine: true))
        case .include?:
            guard let handle = try? reader.readUInt16(), let end = try? reader.readUInt16() else { break }
            fields.append(Field(Names.starting, .hexadecimal(UInt64(handle), digits: 4), isInLine: true))
            fields.append(Field(Names.ending, .hexadecimal(UInt64(end), digits: 4), isInLine: true))
            if let uuid = try? BluetoothUUID(decoding: reader.readRemaining()) {
                fields.append(Field(Names.service, .uuid(uuid), isInLine: true))
            }
        case .clientCharacteristicConfiguration?:
            guard value.count == 2, let bits = try? reader.readUInt16() else { break }
            fields[0] = Field(Names.value, .octets(value))
            fields.append(Field(Names.configuration, .flags(UInt64(bits), .clientConfiguration), isInLine: true))
        default: break
        }
        return fields
    }
}

extension Opcode {
    /// The PDU's name in the specification (Vol 3, Part F, 3.4.8).
    var title: String {
        switch self {
        case .errorResponse: "Error Response"
        case .exchangeMTURequest: "Exchange MTU Request"
        case .exchangeMTUResponse: "Exchange MTU Response"
        case .findInformationRequest: "Find Information Request"
        case .findInformationResponse: "Find Information Response"
        case .findByTypeValueRequest: "Find By Type Value Request"
        case .findByTypeValueResponse: "Find By Type Value Response"
        case .readByTypeRequest: "Read By Type Request"
        case .readByTypeResponse: "Read By Type Response"
        case .readRequest: "Read Request"
        case .readResponse: "Read Response"
        case .readBlobRequest: "Read Blob Request"
        case .readBlobResponse: "Read Blob Response"
        case .readMultipleRequest: "Read Multiple Request"
        case .readMultipleResponse: "Read Multiple Response"
        case .readByGroupTypeRequest: "Read By Group Type Request"
        case .readByGroupTypeResponse: "Read By Group Type Response"
        case .writeRequest: "Write Request"
        case .writeResponse: "Write Response"
        case .prepareWriteRequest: "Prepare Write Request"
        case .prepareWriteResponse: "Prepare Write Response"
        case .executeWriteRequest: "Execute Write Request"
        case .executeWriteResponse: "Execute Write Response"
        case .handleValueNotification: "Handle Value Notification"
        case .handleValueIndication: "Handle Value Indication"
        case .handleValueConfirmation: "Handle Value Confirmation"
        case .readMultipleVariableRequest: "Read Multiple Variable Request"
        case .readMultipleVariableResponse: "Read Multiple Variable Response"
        case .multipleHandleValueNotification: "Multiple Handle Value Notification"
        case .writeCommand: "Write Command"
        case .signedWriteCommand: "Signed Write Command"
        }
    }
}
