import BLEATT
import BLEByteCoding
import BluetoothTypes

/// Serves one request of one client, with the app's answers to it so far.
struct RequestContext {
    let session: ServerSession
    let answers: [AccessRequest.Kind: Result<[UInt8], ATTErrorCode>]
    /// The revision of the database at the arrival of the request. The request does not reach newer attributes, because
    /// their handles may have belonged to a service that was removed while the request waited for the app.
    let revision: UInt64

    typealias Interruption = ServerSession.Interruption

    private var database: AttributeDatabase { session.server.database }
    private var mtu: Int { session.mtu }

    /// Writes the response to a request.
    mutating func process(_ opcode: ATTOpcode, _ pdu: RawSpan, into buffer: inout PacketBuffer) throws(Interruption) {
        switch opcode {
        case .findInformationRequest: try findInformation(decode(pdu), into: &buffer)
        case .findByTypeValueRequest: try findByTypeValue(pdu, into: &buffer)
        case .readByTypeRequest: try readByType(decode(pdu), into: &buffer)
        case .readByGroupTypeRequest: try readByGroupType(decode(pdu), into: &buffer)
        case .readRequest: try read(decode(pdu), into: &buffer)
        case .readBlobRequest: try readBlob(decode(pdu), into: &buffer)
        case .readMultipleRequest: try readMultiple(pdu, into: &buffer)
        case .readMultipleVariableRequest: try readMultipleVariable(pdu, into: &buffer)
        case .writeRequest: try write(pdu, into: &buffer)
        case .prepareWriteRequest: try prepareWrite(pdu, into: &buffer)
        case .executeWriteRequest: try executeWrite(decode(pdu), into: &buffer)
        default: throw .error(.requestNotSupported, .invalid)
        }
    }

    private func decode<PDU: ProtocolDataUnit>(_ pdu: RawSpan) throws(Interruption) -> PDU {
        do throws(PacketDecodingError) {
            return try PDU(decoding: pdu)
        } catch {
            throw .error(.invalidPDU, .invalid)
        }
    }

    // MARK: Discovery

    private func findInformation(
        _ request: FindInformationRequest,
        into buffer: inout PacketBuffer
    ) throws(Interruption) {
        var isShort: Bool?
        let start = buffer.count
        try forEachAttribute(in: request.range) { attribute in
            let uuid = attribute.type
            let length = 2 + uuid.width.byteCount
            if let isShort {
                guard isShort == (uuid.width == .bits16), buffer.count - start + length <= mtu else { return false }
            } else {
                isShort = uuid.width == .bits16
                buffer.append(ATTOpcode.findInformationResponse.rawValue)
                buffer.append(UInt8(uuid.width == .bits16 ? 0x01 : 0x02))
            }
            buffer.append(attribute.handle.rawValue)
            uuid.encode(into: &buffer)
            return true
        }
        if isShort == nil { throw .error(.attributeNotFound, request.range.start) }
    }

    private func findByTypeValue(_ pdu: RawSpan, into buffer: inout PacketBuffer) throws(Interruption) {
        guard let request = try? FindByTypeValueRequest(decoding: pdu) else { throw .error(.invalidPDU, .invalid) }
        let type = BluetoothUUID(request.type)
        let isService = type == .primaryService || type == .secondaryService
        let uuid = isService ? try? BluetoothUUID(decoding: request.value) : nil
        let start = buffer.count
        buffer.append(ATTOpcode.findByTypeValueResponse.rawValue)
        try forEachAttribute(in: request.range) { attribute in
            guard attribute.type == type, let value = attribute.storedValue else { return true }
            // The client may give a service's UUID in either width.
            let isEqual =
                uuid.map { (try? BluetoothUUID(decoding: value.rawSpan)) == $0 }
                ?? value.rawSpan.elementsEqual(request.value)
            // A comparison discloses the value, so the client must be permitted to read it.
            guard isEqual, (try? session.check(.read, attribute.metadata)) != nil else { return true }
            guard buffer.count - start + 4 <= mtu else { return false }
            buffer.append(attribute.handle.rawValue)
            buffer.append(attribute.metadata.groupEnd.rawValue)
            return true
        }
        if buffer.count == start + 1 { throw .error(.attributeNotFound, request.range.start) }
    }

    private func readByGroupType(
        _ request: ReadByGroupTypeRequest,
        into buffer: inout PacketBuffer
    ) throws(Interruption) {
        guard request.range.isValid else { throw .error(.invalidHandle, request.range.start) }
        guard request.groupType == .primaryService || request.groupType == .secondaryService else {
            throw .error(.unsupportedGroupType, request.range.start)
        }
        var writer = ListResponseWriter(.readByGroupTypeResponse, mtu: mtu, in: &buffer)
        try forEachAttribute(in: request.range) { attribute in
            guard attribute.type == request.groupType, let value = attribute.storedValue else { return true }
            return writer.append(
                handle: attribute.handle,
                end: attribute.metadata.groupEnd,
                value: value.rawSpan,
                to: &buffer
            )
        }
        if writer.isEmpty { throw .error(.attributeNotFound, request.range.start) }
    }

    private func readByType(_ request: ReadByTypeRequest, into buffer: inout PacketBuffer) throws(Interruption) {
        var writer = ListResponseWriter(.readByTypeResponse, mtu: mtu, in: &buffer)
        var reported: [AttributeHandle] = []
        try forEachAttribute(in: request.range, ofType: request.type) { attribute throws(Interruption) in
            do throws(Interruption) {
                try session.check(.read, attribute.metadata)
                let value = try value(of: attribute, offset: 0)
                guard writer.append(handle: attribute.handle, value: value.rawSpan, to: &buffer) else { return false }
                if isReported(attribute) { reported.append(attribute.handle) }
                return true
            } catch {
                // An attribute that cannot be read ends the list. If it is the first, the request fails.
                if case .error = error, !writer.isEmpty { return false }
                throw error
            }
        }
        if writer.isEmpty { throw .error(.attributeNotFound, request.range.start) }
        reportReads(of: reported)
    }

    /// Walks the attributes of a range, or those of one type, until `body` returns false. Leaves out attributes that
    /// were published after the request arrived.
    private func forEachAttribute(
        in range: HandleRange,
        ofType type: BluetoothUUID? = nil,
        _ body: (Attribute) throws(Interruption) -> Bool
    ) throws(Interruption) {
        guard range.isValid else { throw .error(.invalidHandle, range.start) }
        let database = database
        var index = database.firstIndex(atOrAfter: range.start)
        while index < database.attributes.count, database.attributes[index].handle <= range.end {
            // Attributes of other types are not copied.
            if type == nil || database.attributes[index].type == type,
                database.attributes[index].metadata.publishedAt <= revision
            {
                if !(try body(database.attributes[index])) { return }
            }
            index += 1
        }
    }

    // MARK: Reading

    private func readable(_ handle: AttributeHandle) throws(Interruption) -> Attribute {
        guard let attribute = session.server.database.attribute(handle), attribute.metadata.publishedAt <= revision
        else { throw .error(.invalidHandle, handle) }
        try session.check(.read, attribute.metadata)
        return attribute
    }

    /// The value from an offset on, from the server or the app. The app's value is cut to 512 bytes in all (Vol 3,
    /// Part F, 3.2.9).
    private func value(of attribute: Attribute, offset: Int) throws(Interruption) -> [UInt8] {
        if let value = session.ownValue(of: attribute) {
            guard offset <= value.count else { throw .error(.invalidOffset, attribute.handle) }
            return offset == 0 ? value : Array(value[offset...])
        }
        let room = maximumAttributeValueLength - offset
        guard room >= 0 else { throw .error(.invalidOffset, attribute.handle) }
        let value = try answer(to: .read(attribute.handle, offset: offset), at: attribute.handle)
        return value.count <= room ? value : Array(value.prefix(room))
    }

    /// The app's answer. If there is none yet, the method throws the question to the app.
    @discardableResult
    private func answer(
        to access: AccessRequest.Kind,
        at handle: AttributeHandle
    ) throws(Interruption) -> [UInt8] {
        switch answers[access] {
        case .success(let value): return value
        case .failure(let error): throw .error(error, handle)
        case nil: throw .access(access)
        }
    }

    private func read(_ request: ReadRequest, into buffer: inout PacketBuffer) throws(Interruption) {
        let attribute = try readable(request.handle)
        let value = try value(of: attribute, offset: 0)
        ReadResponse(value: value.rawSpan.extracting(first: min(value.count, mtu - 1))).encode(into: &buffer)
        reportRead(of: attribute, offset: 0)
    }

    private func readBlob(_ request: ReadBlobRequest, into buffer: inout PacketBuffer) throws(Interruption) {
        let attribute = try readable(request.handle)
        let value = try value(of: attribute, offset: Int(request.offset))
        ReadBlobResponse(value: value.rawSpan.extracting(first: min(value.count, mtu - 1))).encode(into: &buffer)
        reportRead(of: attribute, offset: Int(request.offset))
    }

    /// Whether a read of an attribute is reported to the app. Reads of declarations, which clients discover, are not
    /// reported.
    ///
    /// Nothing is reported of a client that claims to be a bonded device and is not yet verified.
    private func isReported(_ attribute: Attribute) -> Bool {
        guard session.reportsEvents, !session.security.isIdentityUnverified else { return false }
        return switch attribute.type {
        case .primaryService, .secondaryService, .include, .characteristic: false
        default: true
        }
    }

    private func reportRead(of attribute: Attribute, offset: Int) {
        if isReported(attribute) { session.emit(.read(attribute.handle, offset: offset)) }
    }

    /// Reports that a response has the values with these handles. Called once the response is complete.
    private func reportReads(of handles: [AttributeHandle]) {
        for handle in handles { session.emit(.read(handle, offset: 0)) }
    }

    private func readMultiple(_ pdu: RawSpan, into buffer: inout PacketBuffer) throws(Interruption) {
        guard let request = try? ReadMultipleRequest(decoding: pdu) else { throw .error(.invalidPDU, .invalid) }
        let start = buffer.count
        buffer.append(ATTOpcode.readMultipleResponse.rawValue)
        var handles = request.handles
        var reported: [AttributeHandle] = []
        while let handle = handles.next() {
            let attribute = try readable(handle)
            let value = try value(of: attribute, offset: 0)
            // Values for which the response has no space are left out.
            guard buffer.count - start < mtu else { continue }
            buffer.append(value)
            buffer.truncate(to: start + mtu)
            if isReported(attribute) { reported.append(handle) }
        }
        reportReads(of: reported)
    }

    private func readMultipleVariable(_ pdu: RawSpan, into buffer: inout PacketBuffer) throws(Interruption) {
        guard let request = try? ReadMultipleVariableRequest(decoding: pdu) else { throw .error(.invalidPDU, .invalid) }
        let start = buffer.count
        buffer.append(ATTOpcode.readMultipleVariableResponse.rawValue)
        var handles = request.handles
        var reported: [AttributeHandle] = []
        while let handle = handles.next() {
            let attribute = try readable(handle)
            let value = try value(of: attribute, offset: 0)
            // If not even the length fits, the value is left out.
            guard buffer.count - start + 2 <= mtu else { continue }
            buffer.append(UInt16(truncatingIfNeeded: value.count))
            buffer.append(value)
            buffer.truncate(to: start + mtu)
            if isReported(attribute) { reported.append(handle) }
        }
        reportReads(of: reported)
    }

    // MARK: Writing

    /// The attribute that had this handle at a revision of the database, if the client may write it now.
    private func writable(
        _ handle: AttributeHandle,
        asOf revision: UInt64
    ) throws(Interruption) -> (index: Int, metadata: Attribute.Metadata) {
        guard let attribute = session.server.database.lookUp(handle), attribute.metadata.publishedAt <= revision
        else { throw .error(.invalidHandle, handle) }
        try session.check(.write, attribute.metadata)
        return attribute
    }

    private func write(_ pdu: RawSpan, into buffer: inout PacketBuffer) throws(Interruption) {
        guard let request = try? WriteRequest(decoding: pdu) else { throw .error(.invalidPDU, .invalid) }
        let attribute = try writable(request.handle, asOf: revision)
        if !session.overwrite(attribute, with: request.value) {
            let write = AttributeWrite(handle: request.handle, offset: 0, value: [UInt8](copying: request.value))
            if case .handled = attribute.metadata.source {
                _ = try session.validate(write, over: [], attribute.metadata)
                try answer(to: .write(write, isCommand: false), at: request.handle)
            } else {
                try session.apply(write, to: attribute, isCommand: false)
            }
        }
        WriteResponse().encode(into: &buffer)
    }

    private func prepareWrite(_ pdu: RawSpan, into buffer: inout PacketBuffer) throws(Interruption) {
        guard let request = try? PrepareWriteRequest(decoding: pdu) else { throw .error(.invalidPDU, .invalid) }
        _ = try writable(request.handle, asOf: revision)
        try session.prepare(
            AttributeWrite(
                handle: request.handle,
                offset: Int(request.offset),
                value: [UInt8](copying: request.partValue)
            ),
            at: revision
        )
        PrepareWriteResponse(handle: request.handle, offset: request.offset, partValue: request.partValue)
            .encode(into: &buffer)
    }

    /// Writes all prepared values or none. The method first checks all writes, then asks the app, then writes the
    /// server's own values.
    private func executeWrite(_ request: ExecuteWriteRequest, into buffer: inout PacketBuffer) throws(Interruption) {
        if request.flags == .writeAll {
            let writes = session.mergedPreparedWrites()
            do throws(Interruption) {
                try execute(writes)
            } catch {
                if case .error = error { session.dropPreparedWrites() }
                throw error
            }
        }
        session.dropPreparedWrites()
        ExecuteWriteResponse().encode(into: &buffer)
    }

    private func execute(_ writes: [ServerSession.PreparedWrite]) throws(Interruption) {
        var results: [AttributeHandle: [UInt8]] = [:]
        var handled: [AttributeWrite] = []
        for prepared in writes {
            let write = prepared.write
            let attribute = try writable(write.handle, asOf: prepared.revision).metadata
            if case .handled = attribute.source {
                guard write.offset + write.value.count <= maximumAttributeValueLength else {
                    throw .error(.invalidAttributeValueLength, write.handle)
                }
                handled.append(write)
            } else {
                results[write.handle] = try session.validate(write, over: results[write.handle], attribute)
            }
        }
        if let first = handled.first { try answer(to: .execute(handled), at: first.handle) }
        for prepared in writes where results[prepared.write.handle] != nil {
            guard let attribute = database.lookUp(prepared.write.handle) else { continue }
            try session.apply(prepared.write, to: attribute, isCommand: false)
        }
    }
}
