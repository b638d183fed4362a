import ArgumentParser
import BLE
import BLEProfiles
import BluetoothTypes

extension Iso {
    struct Broadcast: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "broadcast",
            abstract: "Send a file over a broadcast isochronous stream.",
            discussion: """
                Advertises a periodic train that announces the stream, and repeats the file until it is stopped, or for the \
                number of rounds. Any number of devices can receive it with `ble iso receive`.
                """
        )

        @OptionGroup var options: GlobalOptions
        @OptionGroup var code: BroadcastCodeOptions

        @Argument(help: "The file to send.", completion: .file())
        var file: String

        @Option(
            name: .customLong("sdu"),
            help: ArgumentHelp("The length of each SDU, 8 to 1500 bytes.", valueName: "bytes")
        )
        var partLength = 100

        @Option(help: ArgumentHelp("The time between two SDUs, 0.255 to 1000 ms.", valueName: "ms"))
        var interval = SDUInterval(.milliseconds(10))

        @Option(help: ArgumentHelp("How often the file is sent (default: until stopped).", valueName: "n"))
        var rounds: Int?

        @Option(help: "The name that is advertised.")
        var name = "ble iso"

        func validate() throws {
            guard (8...1500).contains(partLength) else { throw ValidationError("--sdu is 8 to 1500 bytes") }
            if let rounds, rounds < 1 { throw ValidationError("--rounds is 1 or more") }
        }

        func run() async throws {
            let teller = StreamTeller(asJSON: options.output.json)
            let content = try await BroadcastFile(try await ByteInput.opened(file), partLength: partLength)
            let parameters = BroadcastGroupParameters(
                sduInterval: interval.duration,
                maximumSDU: partLength,
                maximumLatency: interval.latency,
                code: code.code
            )
            let (name, rounds) = (name, rounds)
            try await options.withAdapter {
                $0.deviceName = name
            } _: { adapter in
                let advertising = try await adapter.peripheral.startAdvertising(
                    AdvertisementConfiguration(
                        isConnectable: false,
                        isScannable: false,
                        interval: .milliseconds(50),
                        advertisingData: AdvertisingData([.completeLocalName(name)]),
                        periodic: PeriodicAdvertisingConfiguration(interval: .milliseconds(50))
                    )
                )
                let group = try await advertising.startBroadcast(parameters)
                try teller.broadcasts(at: try await adapter.information.identityAddress, parameters)
                do {
                    try await content.send(on: group.streams[0], rounds: rounds)
                } catch  where Task.isCancelled && rounds == nil {
                    // The user has stopped the broadcast.
                }
                await uncancelled {
                    await group.stop()
                    await advertising.stop()
                }
                try teller.sent(parts: content.parts.count, bytes: content.byteCount)
            }
        }
    }

    struct Receive: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "receive",
            abstract: "Receive a file from a broadcast isochronous stream.",
            discussion: """
                Finds the periodic train of the device, and receives the stream that it announces, until the file of \
                `ble iso broadcast` is complete. Parts that are lost are received when the broadcaster repeats them.
                """
        )

        @OptionGroup var options: GlobalOptions
        @OptionGroup var finding: FindOptions
        @OptionGroup var code: BroadcastCodeOptions

        @Argument(
            help: "The broadcaster: its address, its name, or service:UUID for the first that advertises the service.",
            transform: { try Target(argument: $0) }
        )
        var target: Target

        @Argument(help: "The file for the received bytes.", completion: .file())
        var file: String

        @Option(help: ArgumentHelp("The number of the stream, 1 to 31.", valueName: "n"))
        var stream = 1

        func validate() throws {
            guard (1...31).contains(stream) else { throw ValidationError("--stream is 1 to 31") }
        }

        func run() async throws {
            let teller = StreamTeller(asJSON: options.output.json)
            let output = try await ByteOutput.opened(file)
            let (target, patience, finding) = (target, options.patience, finding)
            let parameters = BroadcastReceptionParameters(streams: [stream], code: code.code)
            try await options.withAdapter { adapter in
                let train = try await target.find(with: adapter.central, within: patience, finding, \.possibleTrain)
                let reception = try await within(patience.duration) {
                    try await adapter.central.receiveBroadcast(of: train, parameters)
                }
                guard let reception else { throw ToolError.noBroadcast(target, patience) }
                try teller.opened(reception.streams[0])
                var received = ReceivedBroadcastFile()
                for try await sdu in reception.streams[0] {
                    guard let content = try received.take(sdu) else { continue }
                    try output.write(content)
                    await reception.stop()
                    return try teller.received(
                        parts: received.partCount,
                        bytes: content.count,
                        lost: 0,
                        reportedLost: received.lost
                    )
                }
            }
        }
    }
}

/// The code of a broadcast.
struct BroadcastCodeOptions: ParsableArguments {
    @Option(
        name: .customLong("code"),
        help: ArgumentHelp("The broadcast code, 4 to 16 bytes of text (default: not encrypted).", valueName: "text")
    )
    var text: String?

    func validate() throws {
        guard text == nil || code != nil else { throw ValidationError("--code is 4 to 16 bytes of text") }
    }

    var code: BroadcastCode? { text.flatMap { BroadcastCode($0) } }
}
