import ArgumentParser
import BLE
import BLEHCITransport
import BLEProfiles
import Logging

/// The options of every command that uses a controller.
struct GlobalOptions: ParsableArguments {
    @OptionGroup var controller: AdapterOptions

    @Option(
        help: ArgumentHelp("Write all HCI traffic to this file (btsnoop, or .pcapng).", valueName: "file"),
        completion: .file()
    )
    var capture: String?

    @Flag(help: "Replace keys by zeros in the capture, so that it can be shared.")
    var maskKeys = false

    @Option(
        help: ArgumentHelp(
            "How long bringing up the controller, finding a peer and connecting may take, each (default: 15).",
            valueName: "s"
        ),
        transform: { try Seconds(argument: $0) }
    )
    var timeout: Seconds?

    @Option(
        help: ArgumentHelp(
            "Make the host's random numbers the same each time, for captures that are to be replayed. Its keys are not "
                + "secret then.",
            valueName: "number"
        )
    )
    var seed: UInt64?

    @Flag(
        help: ArgumentHelp(
            "Accept a bonded device that has a key for private addresses only under these, not under its identity "
                + "address."
        )
    )
    var networkPrivacy = false

    @Option(
        help: ArgumentHelp(
            "The greatest number of enhanced ATT bearers on an encrypted link: 1 to 5 to use them (default: 0).",
            valueName: "number"
        )
    )
    var enhancedBearers = 0

    @Flag(help: "Let peers change the subrate of connections.")
    var subrating = false

    @OptionGroup var state: StateOptions

    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard (0...5).contains(enhancedBearers) else {
            throw ValidationError("a link has 0 to 5 enhanced bearers, not \(enhancedBearers)")
        }
    }

    /// The requested time limit, or the default.
    var patience: Seconds { timeout ?? Seconds(.seconds(15)) }
}

/// Which controller is used.
struct AdapterOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            The controller: hci0, addr:ADDRESS, auto, unix:PATH, seqpacket:PATH, tcp:HOST:PORT, serial:PATH,BAUD or \
            virtual (default: BLE_ADAPTER, then hci0).
            """,
            valueName: "spec"
        ),
        completion: .custom { _, _, _ in AdapterOptions.candidates },
        transform: { try AdapterSpecification(parsing: $0) }
    )
    var adapter: AdapterSpecification?

    func validate() throws {
        guard adapter == nil, let text = environment(AdapterSpecification.environmentVariable) else { return }
        do throws(AdapterSpecificationError) {
            _ = try AdapterSpecification(parsing: text)
        } catch {
            throw ValidationError("\(AdapterSpecification.environmentVariable): \(error)")
        }
    }

    /// The values that shells propose: the kernel's adapters, and a controller in software.
    private static var candidates: [String] {
        AdapterInventory.read().adapters.map { "hci\($0.index)" } + ["virtual"]
    }

    /// The controller that the options name, or the environment, or else hci0.
    func specification() throws(TransportError) -> AdapterSpecification {
        if let adapter { adapter } else { try AdapterSpecification.default() }
    }
}

/// The options for a command's output.
struct OutputOptions: ParsableArguments {
    @Flag(help: "Print lines of JSON.")
    var json = false

    @Flag(name: .shortAndLong, help: "Log on standard error; twice for debugging, thrice for all.")
    var verbose: Int

    /// A logger to standard error.
    var logger: Logger { OutputOptions.logger(verbosity: verbose) }

    static func logger(verbosity: Int) -> Logger {
        var logger = Logger(label: "ble") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel =
            switch verbosity {
            case 0: .error
            case 1: .info
            case 2: .debug
            default: .trace
            }
        return logger
    }
}
