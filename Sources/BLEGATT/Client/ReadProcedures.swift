import BLEATT
import BLEByteCoding
import BluetoothTypes

/// The maximum length of an attribute value, in bytes (Vol 3, Part F, 3.2.9).
public let maximumAttributeValueLength = 512

/// Read Characteristic Value (Vol 3, Part G, 4.8.1): at most ATT_MTU - 1 bytes.
public struct ReadValue: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    let handle: AttributeHandle

    /// Creates a read of the attribute with this handle: a characteristic value or a descriptor.
    public init(handle: AttributeHandle) { self.handle = handle }

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<[UInt8]> {
        send(ReadRequest(handle: handle), into: &buffer)
    }

    public mutating func receive(
        _ response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[UInt8]> {
        guard let response = try? ReadResponse(decoding: response) else {
            return .finished(.failure(.malformedResponse(.readRequest)))
        }
        // A response has at most ATT_MTU bytes. Further bytes are not part of the value.
        let length = min(response.value.byteCount, min(mtu - 1, maximumAttributeValueLength))
        return .finished(.success([UInt8](copying: response.value.extracting(first: length))))
    }
}

/// Read Long Characteristic Values (Vol 3, Part G, 4.8.3): the whole value, part by part, up to 512 bytes.
public struct ReadLongValue: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    let handle: AttributeHandle
    private var value: [UInt8] = []
    /// ATT_MTU when the request was sent. The response has at most as many bytes, also if ATT_MTU has grown since.
    private var requestMTU = 0

    /// Creates a read of the attribute with this handle: a characteristic value or a descriptor.
    public init(handle: AttributeHandle) { self.handle = handle }

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<[UInt8]> {
        requestMTU = mtu
        return send(ReadRequest(handle: handle), into: &buffer)
    }

    public mutating func receive(
        _ response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[UInt8]> {
        // Read Response and Read Blob Response have the same form. Bytes beyond ATT_MTU are read again.
        let part = response.extracting(first: min(response.byteCount, mtu)).extracting(droppingFirst: 1)
        let taken = part.extracting(first: min(part.byteCount, maximumAttributeValueLength - value.count))
        if value.isEmpty { value = [UInt8](copying: taken) } else { value.append(copying: taken) }
        let isLast = part.byteCount < min(requestMTU, mtu) - 1 || value.count >= maximumAttributeValueLength
        if isLast { return .finished(.success(value)) }
        requestMTU = mtu
        return send(ReadBlobRequest(handle: handle, offset: UInt16(value.count)), into: &buffer)
    }

    public mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[UInt8]> {
        // If a value ends exactly with a part, the client may only learn this by a further request.
        if !value.isEmpty, error.error == .invalidOffset || error.error == .attributeNotLong {
            return .finished(.success(value))
        }
        return fail(with: error)
    }
}

/// A value found by its type.
public struct TypedValue: Hashable, Sendable {
    /// The handle of the value.
    public let handle: AttributeHandle
    /// May be cut to the length of one response.
    public let value: [UInt8]
}

/// Read Using Characteristic UUID (Vol 3, Part G, 4.8.2), over the whole range.
public struct ReadUsingUUID: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    let uuid: BluetoothUUID
    private var walk: RangeWalk
    private var values: [TypedValue] = []

    /// Creates a read of all values of type `uuid` in `range`: by default, the whole database.
    public init(uuid: BluetoothUUID, range: HandleRange = .all) {
        self.uuid = uuid
        walk = RangeWalk(range)
    }

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<[TypedValue]> {
        guard walk.range.isValid else { return .finished(.failure(.invalidArgument)) }
        if let error = walk.budget.takeRequest() { return .finished(.failure(error)) }
        return send(ReadByTypeRequest(range: walk.range, type: uuid), into: &buffer)
    }

    public mutating func receive(
        _ response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[TypedValue]> {
        guard let response = try? ReadByTypeResponse(decoding: response) else {
            return .finished(.failure(.malformedResponse(.readByTypeRequest)))
        }
        var entries = response.entries
        while let entry = entries.next() {
            if let error = walk.advance(over: entry.handle, of: .readByTypeRequest) {
                return .finished(.failure(error))
            }
            values.append(TypedValue(handle: entry.handle, value: [UInt8](copying: entry.value)))
        }
        return walk.isAtEnd ? .finished(.success(values)) : start(mtu: mtu, into: &buffer)
    }

    public mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[TypedValue]> {
        if error.error == .attributeNotFound, !values.isEmpty { return .finished(.success(values)) }
        return fail(with: error)
    }
}
