import ArgumentParser
import BLE
import BLEProfiles

struct Channel: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "channel",
        abstract:
            "Send the input over an L2CAP channel to a peer, and write the bytes that the peer sends to the output.",
        discussion: """
            The channel lasts until the peer closes it, or with --close until the whole input is sent. Events are \
            printed on standard error. With --json, they are printed as lines of JSON on standard output, and the \
            received bytes are written to a file.
            """,
        subcommands: [Listen.self, Open.self]
    )

    struct Listen: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "listen",
            abstract: "Advertise, and accept the first channel that a peer opens."
        )

        @OptionGroup var options: GlobalOptions
        @OptionGroup var channel: ChannelOptions

        @Option(
            help: ArgumentHelp("The PSM of the service, 0x01 to 0xFF (default: a free one from 0x80 on)."),
            transform: { try PSM(argument: $0) }
        )
        var psm: PSM?

        @Option(help: "The name that is advertised.")
        var name = "ble channel"

        func validate() throws { try channel.validate(asJSON: options.output.json) }

        func run() async throws {
            let ends = try await channel.openFiles()
            let teller = ChannelTeller(asJSON: options.output.json)
            try await options.withAdapter {
                $0.deviceName = name
            } _: { adapter in
                let listener = try await adapter.peripheral.publishChannel(
                    psm: psm?.value,
                    configuration: channel.configuration
                )
                let advertising = try await adapter.peripheral.startAdvertising(.connectable(named: name))
                try teller.listening(psm: listener.psm, at: try await adapter.information.identityAddress)
                var channels = listener.makeAsyncIterator()
                guard let opened = await channels.next() else {
                    try Task.checkCancellation()
                    throw BLEError.closed
                }
                await advertising.stop()
                try await ChannelTransfer(opened, ends, closesAtEnd: channel.close, teller).run()
            }
        }
    }

    struct Open: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "open",
            abstract: "Connect to a peer and open a channel to one of its services."
        )

        @OptionGroup var peer: PeerOptions
        @OptionGroup var channel: ChannelOptions

        @Argument(help: "The service's PSM, 0x01 to 0xFF.", transform: { try PSM(argument: $0) })
        var psm: PSM

        func validate() throws {
            try channel.validate(asJSON: peer.options.output.json)
            guard channel.input == nil else { return }
            try peer.pairing.validate(
                inputHas: "the data to send",
                remedy: "name a file with --input; or pair first with `ble pair`"
            )
        }

        func run() async throws {
            let ends = try await channel.openFiles()
            let teller = ChannelTeller(asJSON: peer.options.output.json)
            let (channel, psm) = (channel, psm)
            try await peer.withPeer(inputHasData: channel.input == nil) { peer in
                let opened = try await peer.openChannel(psm: psm.value, configuration: channel.configuration)
                try await ChannelTransfer(opened, ends, closesAtEnd: channel.close, teller).run()
            }
        }
    }
}
