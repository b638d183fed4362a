import ArgumentParser
import BLE
import BLEProfiles

struct Iso: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "iso",
        abstract: "Send or receive a file over an isochronous stream.",
        discussion: """
            With listen and open, the stream belongs to a connection. With broadcast and receive, any number of devices \
            receive it without a connection.
            On a connected stream, one side sends with --send, the other receives with --receive. Each SDU has the number of its part of the file \
            and its bytes. The receiver closes the stream after the last part, and counts the parts that were lost. They \
            are missing in the received file.
            """,
        subcommands: [Listen.self, Open.self, Broadcast.self, Receive.self]
    )

    struct Listen: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "listen",
            abstract: "Advertise, and accept the first stream that a central requests."
        )

        @OptionGroup var options: GlobalOptions
        @OptionGroup var files: StreamFileOptions

        @Option(help: "The name that is advertised.")
        var name = "ble iso"

        func run() async throws {
            let teller = StreamTeller(asJSON: options.output.json)
            let part = files.partLength
            let ends = try await files.openFiles()
            try await options.withAdapter {
                $0.deviceName = name
                $0.usesConnectedStreams = true
            } _: { adapter in
                let requests = try await adapter.peripheral.streamRequests()
                let advertising = try await adapter.peripheral.startAdvertising(.connectable(named: name))
                try teller.ready(at: try await adapter.information.identityAddress)
                var iterator = requests.makeAsyncIterator()
                guard let request = await iterator.next() else {
                    try Task.checkCancellation()
                    throw BLEError.closed
                }
                let stream = try await request.accept()
                await advertising.stop()
                try await StreamTransfer(stream, teller, partLength: part).run(ends)
            }
        }
    }

    struct Open: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "open",
            abstract: "Connect to a peripheral and open a stream to it."
        )

        @OptionGroup var options: GlobalOptions
        @OptionGroup var finding: FindOptions
        @OptionGroup var files: StreamFileOptions

        @Argument(
            help: "The peer: its address, its name, or service:UUID for the first that advertises the service.",
            transform: { try Target(argument: $0) }
        )
        var target: Target

        @Option(help: ArgumentHelp("The time between two SDUs, 0.255 to 1000 ms.", valueName: "ms"))
        var interval = SDUInterval(.milliseconds(10))

        func run() async throws {
            let teller = StreamTeller(asJSON: options.output.json)
            let ends = try await files.openFiles()
            let part = files.partLength
            let (target, patience, finding) = (target, options.patience, finding)
            var parameters = ConnectedGroupParameters(sduInterval: interval.duration)
            parameters.maximumLatency = interval.latency
            parameters.maximumSDUToPeripheral = files.send == nil ? 0 : part
            parameters.maximumSDUToCentral = files.send == nil ? part : 0
            try await options.withAdapter {
                $0.usesConnectedStreams = true
            } _: { [parameters] adapter in
                let found = try await target.findConnectable(with: adapter.central, within: patience, finding)
                let peer = try await adapter.central.connect(to: found, timeout: patience.duration)
                do {
                    let streams = try await adapter.central.openStreams(to: [peer], parameters)
                    try await StreamTransfer(streams[0], teller, partLength: part).run(ends)
                } catch {
                    await uncancelled { await peer.disconnect() }
                    throw error
                }
                await uncancelled { await peer.disconnect() }
            }
        }
    }
}
