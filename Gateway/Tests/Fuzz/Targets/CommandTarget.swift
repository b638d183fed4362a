import Foundation
import GatewayCore

@testable import GatewayMQTT

/// Reads each step of a script as a command that the broker has delivered, and writes a result of it. The lowest bit of
/// an action says whether the broker had kept the command.
enum CommandFuzzing {
    /// The longest value of an attribute (Vol 3, Part F, 3.2.9).
    private static let valueLimit = 512

    static func run(_ script: FuzzScript) {
        for step in script.steps { perform(step) }
    }

    private static func perform(_ step: FuzzScript.Step) {
        let payload = step.octets.count <= MQTTReception.sizeLimit ? step.octets : nil
        let isRetained = step.action & 1 != 0
        let request = CommandRequest(MQTTReception(topic: "commands", payload: payload, isRetained: isRetained))
        let result: Result<DeviceCommandOutcome, DeviceCommandError>
        switch request.command {
        case .failure(let error): result = .failure(error)
        case .success(let command):
            require(!isRetained, "a command that was kept is performed")
            require(request.identifier != nil && request.name != nil, "a command without an identifier or a name")
            check(command)
            result = .success(outcome(of: command, step.octets))
        }
        let text = request.text(of: result, gateway: "hall")
        require(text.utf8.count <= CommandRequest.resultSizeLimit, "a result of \(text.utf8.count) bytes")
        let object = (try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? [String: Any]
        require(object != nil, "a result that is no object of JSON: \(text)")
        require(object?["id"] as? String == request.identifier, "the result of another command: \(text)")
    }

    private static func check(_ command: DeviceCommand) {
        require(command.address >> 48 == 0, "an address of more than 48 bits: \(command)")
        let times = Duration.milliseconds(100)...Duration.seconds(120)
        require(times.contains(command.timeout), "a time-out of \(command.timeout)")
        guard case .write(_, let value, _) = command.action else { return }
        require(value.count <= valueLimit, "a value of \(value.count) bytes")
    }

    /// The outcome of a command; a read returns the bytes of the step.
    private static func outcome(of command: DeviceCommand, _ octets: [UInt8]) -> DeviceCommandOutcome {
        guard case .read(let path) = command.action else { return .done }
        return .value(Array(octets.prefix(valueLimit)), of: path.characteristic)
    }
}
