import BluetoothTypes
import ByteCoding

/// The LE signalling channel of one link: answers the peer's commands and pairs our own with their responses
/// (Vol 3, Part A, 4 and 6.2).
public struct SignalingChannel {
    /// Which end of the link we are.
    public enum Role: Sendable {
        case central
        case peripheral
    }

    /// What the owner does after a command was received.
    public enum Action: Equatable, Sendable {
        /// Nothing; the command was an answer to nothing or needs none.
        case none
        /// Send what was written into the buffer.
        case send
        /// The peer, a peripheral, asks for other parameters: decide, then call
        /// ``SignalingChannel/answer(_:identifier:into:)``.
        case parameterUpdateRequested(ConnectionParameterUpdateRequest, identifier: UInt8)
        /// Our own request was answered, or will not be: nil.
        case parameterUpdateFinished(ConnectionParameterUpdateResponse?)
        /// The C-frame holds no whole command, or a response could not be read; neither is answered. Count it.
        case malformed(PacketDecodingError)
        /// A request could not be read. Count it, and send the Command Reject that was written into the buffer.
        case rejected(PacketDecodingError)
    }

    /// Our request cannot be made now.
    public enum RequestError: Error, Equatable, Sendable {
        case onlyPeripheralsRequest
        case requestPending
        case invalidParameters
    }

    /// The longest C-frame payload that we accept; what an LE-U signalling channel must at least take.
    public static let maximumTransmissionUnit = 23
    /// How long a request waits for its response (RTX timer, Vol 3, Part A, 6.2.1).
    public static let responseTimeout = Duration.seconds(30)

    private struct Pending: Equatable {
        var identifier: UInt8
        var deadline: Instant
    }

    private let role: Role
    /// Where the link's requests get their identifiers from, those for channels as well.
    public var identifiers = SignalingIdentifiers()
    private var pendingParameterUpdate: Pending?

    public init(role: Role) {
        self.role = role
    }

    /// When ``advance(to:)`` wants to be called, if at all.
    public var deadline: Instant? { pendingParameterUpdate?.deadline }

    /// Takes the payload of one frame from the signalling channel.
    public mutating func receive(_ payload: RawSpan, into buffer: inout PacketBuffer) -> Action {
        guard payload.byteCount <= SignalingChannel.maximumTransmissionUnit else {
            // The identifier of the first request is what a reject must carry (Vol 3, Part A, 4.1).
            CommandReject.signalingMTUExceeded(actual: UInt16(SignalingChannel.maximumTransmissionUnit))
                .encode(identifier: payload[checked: 1] ?? 0, into: &buffer)
            return .send
        }
        do throws(PacketDecodingError) {
            let command = try SignalingCommand(decoding: payload)
            do throws(PacketDecodingError) {
                return try receive(command, into: &buffer)
            } catch {
                guard !command.code.isResponse else { return .malformed(error) }
                // The corresponding response would be inappropriate (Vol 3, Part A, 4.1), and without an answer the peer
                // would wait for the 30 seconds of its timer.
                CommandReject.commandNotUnderstood.encode(identifier: command.identifier, into: &buffer)
                return .rejected(error)
            }
        } catch {
            return .malformed(error)
        }
    }

    private mutating func receive(
        _ command: borrowing SignalingCommand,
        into buffer: inout PacketBuffer
    ) throws(PacketDecodingError) -> Action {
        switch command.code {
        case .connectionParameterUpdateRequest where role == .central:
            let request = try ConnectionParameterUpdateRequest(decoding: command.data)
            guard request.isValid else {
                ConnectionParameterUpdateResponse.rejected.encode(identifier: command.identifier, into: &buffer)
                return .send
            }
            return .parameterUpdateRequested(request, identifier: command.identifier)
        case .connectionParameterUpdateResponse:
            guard pendingParameterUpdate?.identifier == command.identifier else { return .none }
            let response = try ConnectionParameterUpdateResponse(decoding: command.data)
            pendingParameterUpdate = nil
            return .parameterUpdateFinished(response)
        case .commandReject:
            guard pendingParameterUpdate?.identifier == command.identifier else { return .none }
            _ = try CommandReject(decoding: command.data)
            pendingParameterUpdate = nil
            return .parameterUpdateFinished(nil)
        case let code where code.isResponse:
            return .none
        default:
            CommandReject.commandNotUnderstood.encode(identifier: command.identifier, into: &buffer)
            return .send
        }
    }

    /// Writes the answer to a peripheral's request.
    public func answer(
        _ response: ConnectionParameterUpdateResponse,
        identifier: UInt8,
        into buffer: inout PacketBuffer
    ) {
        response.encode(identifier: identifier, into: &buffer)
    }

    /// Writes a request for other parameters; its outcome comes as ``Action/parameterUpdateFinished(_:)``.
    public mutating func requestParameterUpdate(
        _ request: ConnectionParameterUpdateRequest,
        at now: Instant,
        into buffer: inout PacketBuffer
    ) throws(RequestError) {
        guard role == .peripheral else { throw .onlyPeripheralsRequest }
        guard pendingParameterUpdate == nil else { throw .requestPending }
        guard request.isValid else { throw .invalidParameters }
        let identifier = identifiers.take()
        pendingParameterUpdate = Pending(
            identifier: identifier,
            deadline: now + SignalingChannel.responseTimeout
        )
        request.encode(identifier: identifier, into: &buffer)
    }

    /// Ends a request whose time is over.
    public mutating func advance(to now: Instant) -> Action {
        guard let pending = pendingParameterUpdate, pending.deadline <= now else { return .none }
        pendingParameterUpdate = nil
        return .parameterUpdateFinished(nil)
    }
}
