import ArgumentParser
import Capture
import Dissection
import Profiles

struct Decode: AsyncParsableCommand {
    /// When lines are coloured.
    enum Color: String, ExpressibleByArgument, CaseIterable {
        case auto
        case always
        case never
    }

    static let configuration = CommandConfiguration(
        commandName: "decode",
        abstract: "Show what is in a capture of HCI traffic.",
        discussion: """
            A line has the packet's number, the time of day in UTC, the adapter, the direction (< to the controller, > from \
            it) and what the packet is; in brackets, the number of the packet that it answers and how long that took.

            A filter is address=ADDRESS, link=HANDLE, layer=LAYER (command, event, acl, l2cap, att, smp, synchronous, iso, \
            note), opcode=NUMBER, handle=NUMBER (an attribute) or malformed; where several are given, all must hold.
            """
    )

    @Argument(help: "A capture: btsnoop, pcap, pcapng or Apple PacketLogger; - is standard input.")
    var file: String

    @Flag(name: .shortAndLong, help: "Print every field of each packet.")
    var verbose = false

    @Flag(help: "Print a line of JSON for each packet.")
    var json = false

    @Option(
        help: ArgumentHelp("Print only packets for which this holds; may be repeated.", valueName: "expr"),
        transform: {
            guard let filter = PacketFilter(parsing: $0) else { throw ArgumentProblem("\($0) is no filter") }
            return filter
        }
    )
    var filter: [PacketFilter] = []

    @Flag(help: "Print what the capture holds as a whole: devices, links, procedures, errors, round trips.")
    var summary = false

    @Option(help: ArgumentHelp("Colour lines: auto, always or never.", valueName: "when"))
    var color = Color.auto

    func run() async throws {
        var reader = CaptureReader()
        var input = try CaptureInput(file)
        var printer = PacketPrinter(self)
        var problem: CaptureReadingError?
        do throws(CaptureReadingError) {
            try read(&reader, &input, &printer)
        } catch {
            problem = error
        }
        if let failure = printer.failure { throw failure }
        if let failure = input.failure { throw failure }
        try printer.finish(hasSummary: summary && (problem == nil || reader.recordCount > 0))
        if let problem { throw FileError(path: file, problem: problem.description) }
    }

    private func read(
        _ reader: inout CaptureReader,
        _ input: inout CaptureInput,
        _ printer: inout PacketPrinter
    ) throws(CaptureReadingError) {
        while printer.failure == nil {
            switch try reader.advance() {
            case .record:
                if let record = reader.record { printer.take(record) }
            case .needsBytes:
                // What has been read is shown before more is waited for.
                if input.isSlow { printer.flush() }
                if !input.append(to: &reader) { reader.finish() }
            case .end: return
            }
        }
    }
}
