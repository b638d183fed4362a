import BLEATT
import BLEByteCoding
import BLECapture
import BluetoothTypes

/// Reads one ATT PDU into fields, and updates the observed database of the server.
struct AttributeReading {
    let direction: CaptureDirection
    let link: LinkState
    let request: AttributeBearerState.Request?
    let isDescribed: Bool
    var fields: [Field] = []
    /// The GATT procedure of the PDU, for the summary.
    var procedure: String?
    /// The error in the PDU.
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

    /// The database of the server that receives a request in this direction.
    var asked: ObservedDatabase { link.database(ofServerSending: direction.opposite) }
    /// The database of the server that sends this PDU.
    var telling: ObservedDatabase { link.database(ofServerSending: direction) }

    /// Reads a PDU. Returns the subject of a request, which its response does not repeat.
    mutating func read(_ opcode: ATTOpcode, _ pdu: RawSpan) throws(PacketDecodingError) -> AttributeBearerState.Subject
    {
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

    private mutating func readRequest(
        _ opcode: ATTOpcode,
        _ pdu: RawSpan
    ) throws(PacketDecodingError) -> AttributeBearerState.Subject {
        switch opcode {
        case .exchangeMTURequest:
            let request = try ExchangeMTURequest(decoding: pdu)
            procedure = "Exchange MTU"
            add(AttributeNames.mtu, .number(Int64(request.clientReceiveMTU)), isInLine: true)
        case .findInformationRequest:
            addRange(try FindInformationRequest(decoding: pdu).range)
            procedure = "Discover Descriptors"
        case .findByTypeValueRequest:
            let request = try FindByTypeValueRequest(decoding: pdu)
            addRange(request.range)
            let uuid = BluetoothUUID(request.type)
            add(AttributeNames.type, .uuid(uuid), isInLine: true)
            let value = [UInt8](copying: request.value)
            addValue(value, type: uuid)
            procedure = "Discover Service by UUID"
            return .type(uuid, value: value)
        case .readByTypeRequest:
            let request = try ReadByTypeRequest(decoding: pdu)
            addRange(request.range)
            add(AttributeNames.type, .uuid(request.type), isInLine: true)
            procedure =
                request.type == .characteristic
                ? "Discover Characteristics" : request.type == .include ? "Find Included Services" : "Read by UUID"
            return .type(request.type)
        case .readByGroupTypeRequest:
            let request = try ReadByGroupTypeRequest(decoding: pdu)
            addRange(request.range)
            add(AttributeNames.type, .uuid(request.groupType), isInLine: true)
            procedure = "Discover Services"
            return .type(request.groupType)
        case .readRequest:
            procedure = "Read"
            return about(try ReadRequest(decoding: pdu).handle)
        case .readBlobRequest:
            let request = try ReadBlobRequest(decoding: pdu)
            let subject = about(request.handle)
            add(AttributeNames.offset, .number(Int64(request.offset)), isInLine: true)
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
            add(AttributeNames.offset, .number(Int64(request.offset)), isInLine: true)
            add(AttributeNames.value, .octets([UInt8](copying: request.partValue)), isInLine: true)
            procedure = "Prepare Write"
            return subject
        case .executeWriteRequest:
            var reader = ByteReader(pdu)
            try reader.skip(1)
            let flags = try reader.readUInt8()
            try reader.requireEnd()
            procedure = "Execute Write"
            add(AttributeNames.flags, .named(UInt64(flags), NamedValues.all["execute"]?[UInt64(flags)]), isInLine: true)
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
        add(AttributeNames.counter, .number(counter))
        add(AttributeNames.signature, .octets([UInt8](copying: reader.readRemaining())))
        return subject
    }

    private mutating func write(_ handle: AttributeHandle, _ value: RawSpan) -> AttributeBearerState.Subject {
        let subject = about(handle)
        addValue([UInt8](copying: value), type: asked[handle.rawValue]?.type)
        return subject
    }

    /// Adds the attribute of a request, and returns it as the subject.
    private mutating func about(_ handle: AttributeHandle) -> AttributeBearerState.Subject {
        addAttribute(handle.rawValue, in: asked)
        return .handle(handle.rawValue)
    }
}
