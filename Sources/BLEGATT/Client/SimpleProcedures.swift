import BLEATT
import BLEByteCoding
import BluetoothTypes

/// Exchange MTU (Vol 3, Part G, 4.3.1). The output is the server's receive MTU.
public struct ExchangeMTU: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    let offered: UInt16

    /// Creates an exchange.
    ///
    /// - Parameter offered: the longest PDU that the client receives, in bytes: at least 23.
    public init(offered: UInt16) { self.offered = offered }

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<UInt16> {
        send(ExchangeMTURequest(clientReceiveMTU: offered), into: &buffer)
    }

    public mutating func receive(
        _ response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<UInt16> {
        guard let response = try? ExchangeMTUResponse(decoding: response) else {
            return .finished(.failure(.malformedResponse(.exchangeMTURequest)))
        }
        return .finished(.success(response.serverReceiveMTU))
    }
}

/// Read Multiple Characteristic Values (Vol 3, Part G, 4.8.4). The output has the values one after the other.
public struct ReadMultipleValues: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    let handles: [AttributeHandle]

    /// - Parameter handles: at least two, at most as many as fit one request.
    public init(handles: [AttributeHandle]) { self.handles = handles }

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<[UInt8]> {
        guard handles.count >= 2, 1 + 2 * handles.count <= mtu else { return .finished(.failure(.invalidArgument)) }
        ReadMultipleRequest.encode(handles, into: &buffer)
        return .send(.readMultipleRequest)
    }

    public mutating func receive(
        _ response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[UInt8]> {
        guard let response = try? ReadMultipleResponse(decoding: response) else {
            return .finished(.failure(.malformedResponse(.readMultipleRequest)))
        }
        // A response has at most ATT_MTU bytes. Further bytes are not part of the values.
        let length = min(response.values.byteCount, mtu - 1)
        return .finished(.success([UInt8](copying: response.values.extracting(first: length))))
    }
}

/// Read Multiple Variable Length Characteristic Values (Vol 3, Part G, 4.8.5). The output has the values in the order
/// of the handles. The last values are missing if the response has no room for all bytes of them, or may have none.
public struct ReadMultipleVariableValues: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    let handles: [AttributeHandle]
    private var requestMTU = 0

    /// - Parameter handles: at least two, at most as many as fit one request.
    public init(handles: [AttributeHandle]) { self.handles = handles }

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<[[UInt8]]> {
        guard handles.count >= 2, 1 + 2 * handles.count <= mtu else { return .finished(.failure(.invalidArgument)) }
        requestMTU = mtu
        ReadMultipleVariableRequest.encode(handles, into: &buffer)
        return .send(.readMultipleVariableRequest)
    }

    public mutating func receive(
        _ response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[[UInt8]]> {
        // The last value of a full response may be cut. Some servers then give the length of the part as that of the
        // value, so it is not known to be whole.
        var isLastWhole = response.byteCount < min(requestMTU, mtu)
        // A response has at most ATT_MTU bytes. Further bytes are not part of the values.
        let list = response.extracting(first: min(response.byteCount, mtu))
        guard let response = try? ReadMultipleVariableResponse(decoding: list) else {
            return .finished(.failure(.malformedResponse(.readMultipleVariableRequest)))
        }
        var values: [[UInt8]] = []
        var entries = response.entries
        while let entry = entries.next() {
            if entry.value.byteCount != Int(entry.length) { isLastWhole = false }
            let length = min(entry.value.byteCount, maximumAttributeValueLength)
            values.append([UInt8](copying: entry.value.extracting(first: length)))
        }
        guard values.count <= handles.count else {
            return .finished(.failure(.malformedResponse(.readMultipleVariableRequest)))
        }
        if !isLastWhole { _ = values.popLast() }
        return .finished(.success(values))
    }
}

/// Write Characteristic Value, or a descriptor's (Vol 3, Part G, 4.9.3 and 4.12.3).
public struct WriteValue: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    let handle: AttributeHandle
    let value: [UInt8]

    /// Creates a write of at most ATT_MTU - 3 bytes.
    public init(handle: AttributeHandle, value: [UInt8]) {
        self.handle = handle
        self.value = value
    }

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<Void> {
        guard value.count <= mtu - 3 else { return .finished(.failure(.invalidArgument)) }
        return send(WriteRequest(handle: handle, value: value.rawSpan), into: &buffer)
    }

    public mutating func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<Void> {
        guard (try? WriteResponse(decoding: response)) != nil else {
            return .finished(.failure(.malformedResponse(.writeRequest)))
        }
        return .finished(.success(()))
    }
}
