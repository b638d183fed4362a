import BLEATT
import BLEByteCoding
import BluetoothTypes

/// Finds out whether a server accepts enhanced bearers. If it does, reports to it that this client supports them (Vol
/// 3, Part G, 5.3, 7.2 and 7.4).
///
/// The output is whether the server accepts enhanced bearers. The features that the client has reported before stay
/// set.
public struct PrepareEnhancedBearers: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    private enum State {
        case readingServerFeatures
        case readingClientFeatures
        case writingClientFeatures
    }

    private var state = State.readingServerFeatures

    /// Creates the procedure.
    public init() {}

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<Bool> {
        send(ReadByTypeRequest(range: .all, type: .serverSupportedFeatures), into: &buffer)
    }

    public mutating func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<Bool> {
        if case .writingClientFeatures = state { return .finished(.success(true)) }
        guard let response = try? ReadByTypeResponse(decoding: response) else { return malformed }
        var entries = response.entries
        guard let entry = entries.next() else { return malformed }
        // Bits that are not sent are zero, and so is a value without bytes.
        let features = entry.value[checked: 0] ?? 0
        if case .readingClientFeatures = state {
            return report(over: ClientSupportedFeatures(rawValue: features), at: entry.handle, into: &buffer)
        }
        guard ServerSupportedFeatures(rawValue: features).contains(.enhancedAttributeBearer) else {
            return .finished(.success(false))
        }
        state = .readingClientFeatures
        return send(ReadByTypeRequest(range: .all, type: .clientSupportedFeatures), into: &buffer)
    }

    public mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<Bool> {
        if error.error == .databaseOutOfSync { return fail(with: error) }
        return switch state {
        case .readingServerFeatures: .finished(.success(false))
        // A server that accepts enhanced bearers has Client Supported Features (Vol 3, Part G, 7.2). Without it, the
        // channels are requested nevertheless: the server can refuse them.
        case .readingClientFeatures, .writingClientFeatures: .finished(.success(true))
        }
    }

    /// Writes the features of this client, unless the server has them already.
    private mutating func report(
        over reported: ClientSupportedFeatures,
        at handle: AttributeHandle,
        into buffer: inout PacketBuffer
    ) -> ClientStep<Bool> {
        let features = reported.union([.enhancedAttributeBearer, .multipleHandleValueNotifications])
        guard features != reported else { return .finished(.success(true)) }
        state = .writingClientFeatures
        let value = [features.rawValue]
        return send(WriteRequest(handle: handle, value: value.rawSpan), into: &buffer)
    }

    private var malformed: ClientStep<Bool> { .finished(.failure(.malformedResponse(.readByTypeRequest))) }
}
