import ArgumentParser
import BLE
import Profiles

/// Options for faults of the air and the controllers that `ble controller` serves.
struct FaultOptions: ParsableArguments {
    // The air.

    @Option(
        help: ArgumentHelp("How likely a packet on the air is lost.", valueName: "0...1"),
        transform: { try Probability(argument: $0) }
    )
    var loss: Probability?

    @Option(
        help: ArgumentHelp("How much longer packets take on the air.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var latency: Seconds?

    @Option(
        help: ArgumentHelp("Up to how much longer still, at random.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var jitter: Seconds?

    @Option(
        help: ArgumentHelp("Nothing comes through any more so long after the start.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var deadAfter: Seconds?

    // The controllers.

    @Option(
        help: ArgumentHelp("How likely an answer to a command or a completion of data is lost.", valueName: "0...1"),
        transform: { try Probability(argument: $0) }
    )
    var completionLoss: Probability?

    @Option(
        help: ArgumentHelp("How late answers and completions come.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var completionDelay: Seconds?

    @Option(
        help: ArgumentHelp("How likely an event of random octets goes before an event.", valueName: "0...1"),
        transform: { try Probability(argument: $0) }
    )
    var garbage: Probability?

    @Option(
        help: ArgumentHelp("How likely an event is cut short.", valueName: "0...1"),
        transform: { try Probability(argument: $0) }
    )
    var truncation: Probability?

    @Option(
        help: ArgumentHelp("How likely the buffer of an ACL packet is never given back.", valueName: "0...1"),
        transform: { try Probability(argument: $0) }
    )
    var bufferLoss: Probability?

    @Flag(help: "Controllers do not answer LE Ping, as an attacker without the key of a link.")
    var ignorePings = false

    @Option(
        help: ArgumentHelp("Controllers say nothing any more so long after their host has connected.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var silentAfter: Seconds?

    @Option(
        help: ArgumentHelp("Controllers have a hardware error so long after their host has connected.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var hardwareErrorAfter: Seconds?

    @Option(
        help: ArgumentHelp("Controllers vanish so long after their host has connected.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var vanishAfter: Seconds?

    func apply(to configuration: inout ControllerServer.Configuration) {
        configuration.conditions.loss = loss?.value ?? 0
        configuration.conditions.latency = latency?.duration ?? .zero
        configuration.conditions.jitter = jitter?.duration ?? .zero
        configuration.diesAfter = deadAfter?.duration
        configuration.faults.completionLoss = completionLoss?.value ?? 0
        configuration.faults.completionDelay = completionDelay?.duration ?? .zero
        configuration.faults.garbage = garbage?.value ?? 0
        configuration.faults.truncation = truncation?.value ?? 0
        configuration.faults.bufferLoss = bufferLoss?.value ?? 0
        configuration.faults.ignoresPings = ignorePings
        configuration.mishaps[.silent] = silentAfter?.duration
        configuration.mishaps[.hardwareError] = hardwareErrorAfter?.duration
        configuration.mishaps[.vanished] = vanishAfter?.duration
    }
}
