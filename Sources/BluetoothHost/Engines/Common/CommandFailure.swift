import BLEByteCoding
import BLEHCI

/// Why a command failed.
public enum CommandFailure: Error, Equatable, Sendable {
    /// The controller refused the command.
    case status(HCIErrorCode, HCIOpcode)
    /// The controller did not answer in time.
    case timedOut(HCIOpcode)
    /// The controller's answer could not be decoded.
    case malformedReply(HCIOpcode, PacketDecodingError)
    /// The controller was reset or removed before it answered.
    case aborted
}

extension CommandFailure {
    /// The failure that an answer's status stands for; nil if the command has succeeded.
    ///
    /// - Parameter reply: the status and the return parameters that follow it.
    init?(in reply: RawSpan, of opcode: HCIOpcode) {
        guard let status = reply[checked: 0] else {
            self = .malformedReply(opcode, .truncated(needed: 1, available: 0))
            return
        }
        guard HCIErrorCode(rawValue: status) != .success else { return nil }
        self = .status(HCIErrorCode(rawValue: status), opcode)
    }
}

extension CommandFailure: CustomStringConvertible {
    public var description: String {
        switch self {
        case .status(let error, let opcode): "the controller answered \(opcode) with: \(error)"
        case .timedOut(let opcode): "the controller did not answer \(opcode)"
        case .malformedReply(let opcode, let error): "the controller's answer to \(opcode) is malformed: \(error)"
        case .aborted: "the controller was reset"
        }
    }
}

extension Command {
    /// Decodes the controller's answer to this command.
    ///
    /// - Parameter reply: the status and the return parameters that follow it.
    /// - Throws: the failure if the status is not success, or if the answer is malformed.
    static func decodeReply(_ reply: RawSpan) throws(CommandFailure) -> ReturnParameters {
        if let failure = CommandFailure(in: reply, of: opcode) { throw failure }
        do throws(PacketDecodingError) {
            var reader = ByteReader(reply)
            _ = try reader.readUInt8()
            return try ReturnParameters(decodingAfterStatus: &reader)
        } catch {
            throw .malformedReply(opcode, error)
        }
    }
}
