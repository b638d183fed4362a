import BLEATT
import BLEByteCoding
import BluetoothTypes

/// Reads the Database Hash by its type, as the specification requires (Vol 3, Part G, 7.3); nil if the server has none.
public struct ReadDatabaseHash: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    /// Creates the procedure. It reads the first Database Hash of the whole handle range.
    public init() {}

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<UInt128?> {
        send(ReadByTypeRequest(range: .all, type: .databaseHash), into: &buffer)
    }

    public mutating func receive(
        _ response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<UInt128?> {
        guard let response = try? ReadByTypeResponse(decoding: response) else {
            return .finished(.failure(.malformedResponse(.readByTypeRequest)))
        }
        var entries = response.entries
        guard let entry = entries.next(), entry.value.byteCount == 16 else {
            return .finished(.failure(.malformedResponse(.readByTypeRequest)))
        }
        return .finished(.success([UInt8](copying: entry.value).reversed().reduce(0) { $0 << 8 | UInt128($1) }))
    }

    public mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<UInt128?> {
        error.error == .databaseOutOfSync ? fail(with: error) : .finished(.success(nil))
    }
}
