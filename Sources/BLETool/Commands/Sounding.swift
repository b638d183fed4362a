import ArgumentParser
import BLE
import BLEProfiles

struct Sounding: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sounding",
        abstract: "Perform Channel Sounding with a peer, and show what this device measures.",
        discussion: """
            One side listens, the other measures. Both pair if the link needs it. Shown are the steps as the controller of \
            this device has measured them: signal strengths, times and phases. Their distance is not computed.
            """,
        subcommands: [Listen.self, Measure.self]
    )

    struct Listen: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "listen",
            abstract: "Advertise, and be the reflector of the first central that pairs or has a bond."
        )

        @OptionGroup var options: GlobalOptions

        @Option(help: "The name that is advertised.")
        var name = "ble sounding"

        func run() async throws {
            let teller = SoundingTeller(asJSON: options.output.json)
            try await options.withAdapter {
                $0.deviceName = name
                $0.security.justWorks = .always
            } _: { adapter in
                try teller.tell(own: try await adapter.channelSoundingCapabilities())
                let peripheral = adapter.peripheral
                let events = await peripheral.events()
                let advertising = try await peripheral.startAdvertising(.connectable(named: name))
                try teller.ready(at: try await adapter.information.identityAddress)
                for await event in events {
                    guard case .encryptionChanged(let client, _?) = event else { continue }
                    // The initiator does not wait. So the session starts while the advertisement is being stopped.
                    async let stopped: Void = advertising.stop()
                    try await teller.tell(peripheral.channelSounding(with: client))
                    return await stopped
                }
                try Task.checkCancellation()
                throw BLEError.closed
            }
        }
    }

    struct Measure: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "measure",
            abstract: "Connect to a peripheral, pair, and be the initiator."
        )

        @OptionGroup var peer: PeerOptions

        @Option(
            help: ArgumentHelp(
                "The number of procedures, 1 to 65535; 0 to continue until it is stopped.",
                valueName: "n"
            )
        )
        var procedures: UInt16 = 1

        @Option(
            help: ArgumentHelp(
                "The interval between the starts of procedures, in connection events, as in 10 or 10-20: 1 to 65535.",
                valueName: "range"
            ),
            transform: { try NumberRange(argument: $0) }
        )
        var interval: NumberRange?

        @Option(help: "What the steps measure: the round-trip time, phases, or both.")
        var mode = SoundingMode.phase

        func validate() throws {
            guard let interval else { return }
            guard interval.value.lowerBound >= 1, interval.value.upperBound <= 65535 else {
                throw ValidationError("--interval is 1 to 65535")
            }
        }

        func run() async throws {
            let teller = SoundingTeller(asJSON: peer.options.output.json)
            var parameters = ChannelSoundingParameters(procedureCount: procedures)
            parameters.configuration.mainMode = mode.value
            if let range = interval?.value {
                parameters.procedureInterval = UInt16(range.lowerBound)...UInt16(range.upperBound)
            }
            try await peer.withPeer(.none) { [parameters] adapter, peer in
                try teller.tell(own: try await adapter.channelSoundingCapabilities())
                try await peer.pair()
                do {
                    try await teller.tell(peer.channelSounding(parameters))
                } catch  where Task.isCancelled && parameters.procedureCount == 0 && !(error is OutputError) {
                    // Cancellation is the normal end of procedures without a number.
                }
            }
        }
    }
}

/// What a user wants to be measured.
enum SoundingMode: String, ExpressibleByArgument, CaseIterable {
    case time
    case phase
    case both

    var value: ChannelSoundingMode {
        switch self {
        case .time: .mode1
        case .phase: .mode2
        case .both: .mode3
        }
    }
}
