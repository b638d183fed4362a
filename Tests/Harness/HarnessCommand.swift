import ArgumentParser
import Glibc

@main
struct HarnessCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hci-harness",
        abstract: "Take the place of a Bluetooth controller, and test a host with a script or a capture.",
        discussion: """
            The host is run as a child, after --, or as the script says; {adapter} in its command line stands for the \
            adapter to use, {here} for the folder of the script, {directory} for a folder that is removed afterwards. \
            Without a command line the harness waits for a host that is started otherwise.

            A packet that differs from the expected one is reported with the packets before it, and ends the run with \
            status 1. A script that cannot be read ends it with status 2. Docs/Harness.md describes the scripts.
            """
    )

    @Option(parsing: .upToNextOption, help: ArgumentHelp("The scripts to run, in order.", valueName: "file"))
    var script: [String] = []

    @Option(help: ArgumentHelp("Play this capture, of any format, instead of a script.", valueName: "file"))
    var capture: String?

    @Option(
        help: ArgumentHelp(
            "The address for the host: seqpacket:PATH, unix:PATH, tcp:ADDRESS:PORT or vhci (default: a new seqpacket socket).",
            valueName: "address"
        ),
        transform: { text in
            do throws(Complaint) {
                return try ListenAddress(parsing: text)
            } catch {
                throw ValidationError(error.message)
            }
        }
    )
    var listen: ListenAddress?

    @Option(help: ArgumentHelp("An ability of the host that scripts require; may be repeated.", valueName: "ability"))
    var with: [String] = []

    @Option(
        help: ArgumentHelp(
            "The folder to search first for programs (default: that of hci-harness).",
            valueName: "folder"
        )
    )
    var programs: String?

    @Option(help: ArgumentHelp("Maximum wait for each packet, if the script sets no other.", valueName: "s"))
    var timeout = 10.0

    @Option(
        help: ArgumentHelp(
            "With --capture: this command's parameters may be others; may be repeated.",
            valueName: "command"
        ),
        transform: { text in
            do throws(Complaint) {
                return try UInt16(command: text)
            } catch {
                throw ValidationError(error.message)
            }
        }
    )
    var any: [UInt16] = []

    @Flag(help: "With --capture: the random addresses that the host sets may be others.")
    var anyAddress = false

    @Flag(help: "With --capture: keys and random numbers in pairings may be others.")
    var anyRandom = false

    @Flag(name: .shortAndLong, help: "Show each packet as it goes.")
    var verbose = false

    @Argument(parsing: .postTerminator, help: "The host's command line, after --.")
    var host: [String] = []

    func validate() throws {
        guard script.isEmpty != (capture == nil) else {
            throw ValidationError("name scripts with --script, or one capture with --capture")
        }
        guard timeout > 0, timeout < 86_400 else {
            throw ValidationError("--timeout is a number of seconds above zero")
        }
        guard capture != nil || any.isEmpty && !anyAddress && !anyRandom else {
            throw ValidationError("--any, --any-address and --any-random go with --capture only")
        }
    }

    func run() throws {
        let sources = Interruption.shared.handle()
        defer { withExtendedLifetime(sources) {} }
        var runner = Runner()
        runner.listen = listen
        runner.host = host
        runner.programFolders = [programs ?? folder(of: CommandLine.path)]
        runner.abilities = Set(with)
        runner.patience = .seconds(timeout)
        runner.isVerbose = verbose
        if let capture { return try run(capture, runner) }
        try run(try read(), runner)
    }

    private func read() throws -> [Script] {
        do {
            return try script.map { try Script(contentsOf: $0) }
        } catch {
            printError("hci-harness: \(error)")
            throw ExitCode(2)
        }
    }

    private func run(_ scripts: [Script], _ runner: Runner) throws {
        var counts = (passed: 0, failed: 0, skipped: 0)
        for script in scripts {
            let missing = script.needs.filter { !runner.abilities.contains($0) }
            guard missing.isEmpty else {
                counts.skipped += 1
                printLine("skipped \(script.path): \(script.title): needs \(missing.joined(separator: ", "))")
                continue
            }
            let isPassed = try told(as: "\(script.path): \(script.title)") { try runner.run(script) }
            if isPassed { counts.passed += 1 } else { counts.failed += 1 }
        }
        printLine("\(counts.passed) passed, \(counts.failed) failed, \(counts.skipped) skipped")
        if counts.failed > 0 { throw ExitCode(1) }
    }

    private func run(_ path: String, _ runner: Runner) throws {
        let player: CapturePlayer
        do {
            player = try CapturePlayer(contentsOf: path)
        } catch {
            printError("hci-harness: \(error)")
            throw ExitCode(2)
        }
        let allowances = CapturePlayer.Allowances(commands: Set(any), addresses: anyAddress, randoms: anyRandom)
        let isPassed = try told(as: "\(path): \(player.records.count) packets") {
            try runner.run(player, allowances, path: path)
        }
        guard isPassed else { throw ExitCode(1) }
    }

    /// Runs a body and prints its result.
    private func told(as name: String, _ body: () throws -> Void) throws -> Bool {
        do {
            try body()
            printLine("ok      \(name)")
            return true
        } catch let failure as Runner.Failure {
            printLine("FAILED  \(name)")
            for line in failure.report { printLine("    \(line)") }
            return false
        } catch {
            printError("hci-harness: cannot listen: \(error)")
            throw ExitCode(2)
        }
    }
}

extension CommandLine {
    /// The path of this program's file.
    static var path: String {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        return String(decoding: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
