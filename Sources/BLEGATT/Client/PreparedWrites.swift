import BLEATT
import BLEByteCoding
import BluetoothTypes

/// Write Long Characteristic Values and Reliable Writes (Vol 3, Part G, 4.9.4 and 4.9.5).
///
/// The client prepares all values part by part, and compares the parts that the server echoes. The server then writes
/// all values or none.
public struct PreparedWrites: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    /// One value to be written.
    public struct Write: Hashable, Sendable {
        /// The handle of the value.
        public let handle: AttributeHandle
        /// The value, at most 512 bytes.
        public let value: [UInt8]

        /// Creates a write.
        public init(handle: AttributeHandle, value: [UInt8]) {
            self.handle = handle
            self.value = value
        }
    }

    private enum State {
        case preparing(write: Int, offset: Int, length: Int)
        case executing
        case cancelling(ClientError)
    }

    private let writes: [Write]
    private var state = State.preparing(write: 0, offset: 0, length: 0)

    /// - Parameter writes: at least one; each value at most 512 bytes.
    public init(_ writes: [Write]) { self.writes = writes }

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<Void> {
        guard !writes.isEmpty, writes.allSatisfy({ $0.value.count <= maximumAttributeValueLength }) else {
            return .finished(.failure(.invalidArgument))
        }
        return prepare(write: 0, offset: 0, mtu: mtu, into: &buffer)
    }

    private mutating func prepare(
        write index: Int,
        offset: Int,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<Void> {
        let write = writes[index]
        let length = min(write.value.count - offset, mtu - 5)
        state = .preparing(write: index, offset: offset, length: length)
        return send(
            PrepareWriteRequest(
                handle: write.handle,
                offset: UInt16(offset),
                partValue: write.value.rawSpan.extracting(offset..<(offset + length))
            ),
            into: &buffer
        )
    }

    public mutating func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<Void> {
        switch state {
        case .preparing(let index, let offset, let length):
            let write = writes[index]
            guard let response = try? PrepareWriteResponse(decoding: response) else {
                return cancel(.malformedResponse(.prepareWriteRequest), into: &buffer)
            }
            let sent = write.value.rawSpan.extracting(offset..<(offset + length))
            guard response.handle == write.handle, Int(response.offset) == offset,
                response.partValue.elementsEqual(sent)
            else { return cancel(.valueMismatch(handle: write.handle), into: &buffer) }
            if offset + length < write.value.count {
                return prepare(write: index, offset: offset + length, mtu: mtu, into: &buffer)
            }
            if index + 1 < writes.count { return prepare(write: index + 1, offset: 0, mtu: mtu, into: &buffer) }
            state = .executing
            return send(ExecuteWriteRequest(flags: .writeAll), into: &buffer)
        case .executing:
            return .finished(.success(()))
        case .cancelling(let error):
            return .finished(.failure(error))
        }
    }

    public mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<Void> {
        switch state {
        case .preparing:
            guard case .finished(.failure(let error)) = fail(with: error) else { return fail(with: error) }
            return cancel(error, into: &buffer)
        case .executing: return fail(with: error)
        case .cancelling(let error): return .finished(.failure(error))
        }
    }

    /// Makes the server drop its queued writes, then ends in `error`.
    private mutating func cancel(_ error: ClientError, into buffer: inout PacketBuffer) -> ClientStep<Void> {
        state = .cancelling(error)
        return send(ExecuteWriteRequest(flags: .cancelAll), into: &buffer)
    }
}
