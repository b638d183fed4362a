import ArgumentParser
import BLE
import BLEProfiles

/// Options for faults of the air and the controllers that `ble controller` serves.
struct FaultOptions: ParsableArguments {
    // The air.

    @Option(
        help: ArgumentHelp("Probability that a packet on the air is lost.", valueName: "0...1"),
        transform: { try Probability(argument: $0) }
    )
    var loss: Probability?

    @Option(
        help: ArgumentHelp("Additional time that packets take on the air.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var latency: Seconds?

    @Option(
        help: ArgumentHelp("Maximum of a further random delay.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var jitter: Seconds?

    @Option(
        help: ArgumentHelp("All packets are lost from this time after the start.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var deadAfter: Seconds?

    // The controllers.

    @Option(
        help: ArgumentHelp(
            "Probability that an answer to a command or a completion of data is lost.",
            valueName: "0...1"
        ),
        transform: { try Probability(argument: $0) }
    )
    var completionLoss: Probability?

    @Option(
        help: ArgumentHelp("Delay of answers and completions.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var completionDelay: Seconds?

    @Option(
        help: ArgumentHelp("Probability that an event of random bytes precedes an event.", valueName: "0...1"),
        transform: { try Probability(argument: $0) }
    )
    var garbage: Probability?

    @Option(
        help: ArgumentHelp("Probability that an event is truncated.", valueName: "0...1"),
        transform: { try Probability(argument: $0) }
    )
    var truncation: Probability?

    @Option(
        help: ArgumentHelp("Probability that the buffer of an ACL packet is never released.", valueName: "0...1"),
        transform: { try Probability(argument: $0) }
    )
    var bufferLoss: Probability?

    @Flag(help: "Controllers do not answer LE Ping, like an attacker without the key of a link.")
    var ignorePings = false

    @Option(
        help: ArgumentHelp("Controllers send nothing from this time after their host has connected.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var silentAfter: Seconds?

    @Option(
        help: ArgumentHelp(
            "Controllers have a hardware error this time after their host has connected.",
            valueName: "s"
        ),
        transform: { try Seconds(argument: $0) }
    )
    var hardwareErrorAfter: Seconds?

    @Option(
        help: ArgumentHelp("Controllers vanish this time after their host has connected.", valueName: "s"),
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
