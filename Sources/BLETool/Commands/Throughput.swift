import ArgumentParser
import BLE
import BLEGATT
import BLEProfiles

struct Throughput: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "throughput",
        abstract: "Measure the reads, writes and notifications per second over a link, and their processor time.",
        discussion: """
            One device serves and the other measures. Each read or write with a response waits for the previous one. \
            Writes without response and notifications are sent as fast as the link accepts them, and counted at the \
            receiver. The processor time is that of the whole process, divided by the operations.
            """,
        subcommands: [Serve.self, Run.self]
    )

    struct Serve: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "serve",
            abstract: "Advertise the service that `ble throughput run` measures, until stopped."
        )

        @OptionGroup var options: GlobalOptions
        @OptionGroup var place: ExecutorOptions

        @Option(help: ArgumentHelp("Length of the value that is read.", valueName: "bytes"))
        var readLength = 20

        @Option(
            help: ArgumentHelp(
                "Length of the notified values (default: as many as a packet holds).",
                valueName: "bytes"
            )
        )
        var notifyLength: Int?

        @Option(help: "The name that is advertised.")
        var name = "ble throughput"

        func validate() throws {
            try check(readLength, "--read-length")
            try check(notifyLength, "--notify-length")
        }

        func run() async throws {
            let specification = try options.controller.specification()
            try await options.withAdapter {
                $0.deviceName = name
            } _: { adapter in
                try await place.run(on: adapter) {
                    let server = try await ThroughputServer(
                        on: adapter,
                        readLength: readLength,
                        notifyLength: notifyLength
                    )
                    let advertising = try await adapter.peripheral.startAdvertising(.connectable(named: name))
                    let address = try await adapter.information.identityAddress
                    if options.output.json {
                        try Output.standard.json(ServeEvent.ready(adapter: "\(specification)", address: address).json)
                    } else {
                        try Output.standard.line("\(address) serves as \"\(terminalSafe(name))\"; stop with Ctrl-C")
                    }
                    do {
                        try await server.run()
                    } catch  where Task.isCancelled && !(error is OutputError) {
                        // Cancellation is the normal end of serving.
                    }
                    await uncancelled { await advertising.stop() }
                }
            }
        }
    }

    struct Run: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "run",
            abstract: "Connect to a device that runs `ble throughput serve`, and measure."
        )

        @OptionGroup var peer: PeerOptions
        @OptionGroup var place: ExecutorOptions

        @Option(
            name: .customLong("operation"),
            help: ArgumentHelp("The operation to measure; may be repeated (default: all).")
        )
        var operations: [ThroughputOperation] = []

        @Option(
            help: ArgumentHelp("How long each operation is measured (default: 5).", valueName: "s"),
            transform: { try Seconds(argument: $0) }
        )
        var duration: Seconds?

        @Option(
            help: ArgumentHelp(
                "Length of the written values (default: 20 with a response, as many as a packet holds without).",
                valueName: "bytes"
            )
        )
        var length: Int?

        func validate() throws { try check(length, "--length") }

        func run() async throws {
            let command = self
            try await peer.withPeer(.none) { adapter, peer in
                try await command.place.run(on: adapter) { try await command.measure(peer) }
            }
        }

        private func measure(_ device: RemotePeripheral) async throws {
            let client = try await ThroughputClient(
                of: device,
                lasting: duration?.duration ?? .seconds(5),
                length: length
            )
            try await ThroughputPrinter(asJSON: peer.options.output.json).print(
                operations.isEmpty ? ThroughputOperation.allCases : operations
            ) { try await client.measure($0) }
        }
    }
}

/// The executor of a command's tasks that call the host.
struct ExecutorOptions: ParsableArguments {
    @Flag(
        help:
            "Call the host from the threads that all tasks share, as apps do by default, not from the host's loop."
    )
    var onThreads = false

    func run<Value: Sendable>(
        on adapter: Adapter,
        _ body: @Sendable () async throws -> Value
    ) async throws -> Value {
        guard !onThreads else { return try await body() }
        return try await withTaskExecutorPreference(adapter.taskExecutor) { try await body() }
    }
}

extension ThroughputOperation: ExpressibleByArgument {}

private func check(_ length: Int?, _ name: String) throws {
    if let length, !(0...maximumAttributeValueLength).contains(length) {
        throw ValidationError("\(name) is 0 to \(maximumAttributeValueLength) bytes")
    }
}
