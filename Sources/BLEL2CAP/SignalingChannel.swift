import BLEByteCoding
import BluetoothTypes

/// The LE signaling channel of one link: answers the peer's commands and matches our own to their responses
/// (Vol 3, Part A, 4 and 6.2).
public struct SignalingChannel {
    /// The role of this device on the link.
    public enum Role: Sendable {
        /// This device answers requests for connection parameters.
        case central
        /// This device may send requests for connection parameters.
        case peripheral
    }

    /// The owner's next action after a command.
    public enum Action: Equatable, Sendable {
        /// Nothing: the command needs no answer, or is a response without a request.
        case none
        /// Send the bytes in the buffer.
        case send
        /// The peer, a peripheral, requests other parameters: decide, then call
        /// ``SignalingChannel/answer(_:identifier:into:)``.
        case parameterUpdateRequested(ConnectionParameterUpdateRequest, identifier: UInt8)
        /// Our own request was answered; nil if it was rejected as a command.
        case parameterUpdateFinished(ConnectionParameterUpdateResponse?)
        /// Our own request was not answered within ``SignalingChannel/responseTimeout``.
        case parameterUpdateTimedOut
        /// The C-frame holds no complete command, or a response could not be decoded. Neither is answered; count it.
        case malformed(PacketDecodingError)
        /// A request could not be decoded, or more bytes follow it in the C-frame. Count it, and send the Command
        /// Reject in the buffer.
        case rejected(PacketDecodingError)
    }

    /// The reason why a request cannot be sent now.
    public enum RequestError: Error, Equatable, Sendable {
        /// This device is the central. It changes the parameters itself, by HCI.
        case onlyPeripheralsRequest
        /// An earlier request is unanswered and has not timed out.
        case requestPending
        /// A value is out of range; see ``ConnectionParameterUpdateRequest/isValid``.
        case invalidParameters
    }

    /// The longest C-frame payload that this device accepts, in bytes: the minimum for an LE-U signaling channel.
    public static let maximumTransmissionUnit = 23
    /// The time that a request waits for its response (RTX timer, Vol 3, Part A, 6.2.1).
    public static let responseTimeout = Duration.seconds(30)

    private struct Pending: Equatable {
        var identifier: UInt8
        var deadline: Instant
    }

    private let role: Role
    /// The source of identifiers for all requests of the link, including those for channels.
    public var identifiers = SignalingIdentifiers()
    private var pendingParameterUpdate: Pending?

    /// Creates the channel of a new link, with no pending request.
    public init(role: Role) {
        self.role = role
    }

    /// The time at which the owner must call ``advance(to:)``; nil if there is none.
    public var deadline: Instant? { pendingParameterUpdate?.deadline }

    /// Takes the payload of one frame from the signaling channel.
    public mutating func receive(_ payload: RawSpan, into buffer: inout PacketBuffer) -> Action {
        guard payload.byteCount <= SignalingChannel.maximumTransmissionUnit else {
            // A reject must have the identifier of the first request. Responses are discarded (Vol 3, Part A, 4.1).
            guard SignalingCode.isAnswered(payload[checked: 0]), let identifier = payload[checked: 1], identifier != 0
            else { return .malformed(.invalidValue(UInt64(payload.byteCount), field: "signaling length")) }
            CommandReject.signalingMTUExceeded(actual: UInt16(SignalingChannel.maximumTransmissionUnit))
                .encode(identifier: identifier, into: &buffer)
            return .send
        }
        do throws(PacketDecodingError) {
            let command = try SignalingCommand(decoding: payload)
            do throws(PacketDecodingError) {
                return try receive(command, into: &buffer)
            } catch {
                guard !command.code.isResponse else { return .malformed(error) }
                // The corresponding response would be inappropriate (Vol 3, Part A, 4.1). Without an answer the peer
                // would wait for the 30 seconds of its timer.
                CommandReject.commandNotUnderstood.encode(identifier: command.identifier, into: &buffer)
                return .rejected(error)
            }
        } catch {
            // A C-frame has one command only (Vol 3, Part A, 4). A request with more behind it is not executed, so the
            // corresponding response would be inappropriate (4.1). A command that is not complete is not recognized.
            guard case .trailingBytes = error, SignalingCode.isAnswered(payload[checked: 0]),
                let identifier = payload[checked: 1], identifier != 0
            else { return .malformed(error) }
            CommandReject.commandNotUnderstood.encode(identifier: identifier, into: &buffer)
            return .rejected(error)
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

    /// Writes the response to a peripheral's request.
    public func answer(
        _ response: ConnectionParameterUpdateResponse,
        identifier: UInt8,
        into buffer: inout PacketBuffer
    ) {
        response.encode(identifier: identifier, into: &buffer)
    }

    /// Writes a request for other parameters. ``Action/parameterUpdateFinished(_:)`` reports its outcome, or
    /// ``Action/parameterUpdateTimedOut`` that there is none.
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

    /// Ends a request whose time has expired.
    ///
    /// - Returns: ``Action/parameterUpdateTimedOut`` if there was such a request; otherwise ``Action/none``.
    public mutating func advance(to now: Instant) -> Action {
        guard let pending = pendingParameterUpdate, pending.deadline <= now else { return .none }
        pendingParameterUpdate = nil
        return .parameterUpdateTimedOut
    }
}
