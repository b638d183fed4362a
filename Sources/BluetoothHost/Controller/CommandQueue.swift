import BluetoothTypes
import ByteCoding
import DequeModule
import HCI

/// Why a command failed.
public enum CommandFailure: Error, Equatable, Sendable {
    /// The controller refused the command.
    case status(HCI.ErrorCode, HCI.Opcode)
    /// The controller did not answer in time.
    case timedOut(HCI.Opcode)
    /// The controller's answer could not be decoded.
    case malformedReply(HCI.Opcode, PacketDecodingError)
    /// The controller was reset or removed before it answered.
    case aborted
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

/// One command on its way: the packet, and the handling of its outcome.
class CommandExchange {
    let opcode: HCI.Opcode
    let isAnsweredByStatus: Bool
    /// The command packet with its H4 indicator.
    let packet: [UInt8]

    init(opcode: HCI.Opcode, isAnsweredByStatus: Bool, packet: [UInt8]) {
        self.opcode = opcode
        self.isAnsweredByStatus = isAnsweredByStatus
        self.packet = packet
    }

    /// Handles the return parameters: the status and the bytes that follow it.
    func succeed(returning parameters: RawSpan) {}

    func fail(_ failure: CommandFailure) {}
}

/// A command with a known type of return parameters.
final class TypedCommandExchange<C: Command>: CommandExchange {
    typealias Outcome = Result<C.ReturnParameters, CommandFailure>
    private let completion: (Outcome) -> Void

    init(_ command: C, completion: @escaping (Outcome) -> Void) {
        self.completion = completion
        super.init(
            opcode: C.opcode,
            isAnsweredByStatus: C.isAnsweredByStatus,
            packet: PacketBuffer.bytes {
                $0.append(HCI.PacketType.command.rawValue)
                command.encodePacket(into: &$0)
            }
        )
    }

    override func succeed(returning parameters: RawSpan) {
        completion(decode(parameters))
    }

    override func fail(_ failure: CommandFailure) {
        completion(.failure(failure))
    }

    private func decode(_ parameters: RawSpan) -> Outcome {
        do throws(PacketDecodingError) {
            var reader = ByteReader(parameters)
            let status = HCI.ErrorCode(rawValue: try reader.readUInt8())
            guard status == .success else { return .failure(.status(status, opcode)) }
            return .success(try C.ReturnParameters(decodingAfterStatus: &reader))
        } catch {
            return .failure(.malformedReply(opcode, error))
        }
    }
}

/// A queue of commands to the controller. They are sent one at a time, according to the controller's command credits
/// (Vol 4, Part E, 4.4).
struct CommandQueue {
    private var waiting = Deque<CommandExchange>()
    private var inFlight: CommandExchange?
    /// The number of commands that the controller accepts now.
    private(set) var credits = 1

    /// Whether a command waits for its answer.
    var isBusy: Bool { inFlight != nil }

    /// Whether commands wait only because the controller accepts none.
    var isStalled: Bool { inFlight == nil && credits == 0 && !waiting.isEmpty }

    /// The number of commands that wait to be sent.
    var waitingCount: Int { waiting.count }

    /// The command whose answer is awaited.
    var opcodeInFlight: HCI.Opcode? { inFlight?.opcode }

    mutating func enqueue(_ exchange: CommandExchange) {
        waiting.append(exchange)
    }

    /// Removes and returns the next command if it may be sent now.
    mutating func takeNext() -> CommandExchange? {
        guard inFlight == nil, credits > 0, let next = waiting.popFirst() else { return nil }
        inFlight = next
        return next
    }

    /// Handles a Command Complete or Command Status event, and returns the command that it answers.
    ///
    /// - Parameters:
    ///   - credits: Num_HCI_Command_Packets.
    ///   - isSuccessStatus: whether the event was Command Status with success, which answers only commands that have no
    ///     Command Complete.
    mutating func receiveAnswer(to opcode: HCI.Opcode, credits: UInt8, isSuccessStatus: Bool) -> CommandExchange? {
        self.credits = Int(credits)
        guard let exchange = inFlight, exchange.opcode == opcode else { return nil }
        if isSuccessStatus && !exchange.isAnsweredByStatus { return nil }
        inFlight = nil
        return exchange
    }

    /// Removes and returns the command in flight, after its timeout.
    mutating func takeTimedOut() -> CommandExchange? {
        defer { inFlight = nil }
        assumeCredit()
        return inFlight
    }

    /// Assumes that the controller accepts a command, whatever it has reported.
    mutating func assumeCredit() {
        credits = max(credits, 1)
    }

    /// Empties the queue and returns its commands, oldest first.
    mutating func removeAll() -> [CommandExchange] {
        let all = (inFlight.map { [$0] } ?? []) + waiting
        inFlight = nil
        waiting.removeAll()
        credits = 1
        return all
    }
}
