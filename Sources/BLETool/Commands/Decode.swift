import ArgumentParser
import BLECapture
import BLEHCITransport

struct Decode: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decode",
        abstract: "Show the packets in a capture of HCI traffic.",
        discussion: PacketOptions.explanation
    )

    @Argument(help: "A capture: btsnoop, pcap, pcapng or Apple PacketLogger; - is standard input.", completion: .file())
    var file: String

    @OptionGroup var options: PacketOptions

    @Flag(help: "Print only a summary: devices, links, procedures, errors, round trips.")
    var summary = false

    func validate() throws {
        if summary, !options.filter.isEmpty {
            throw ValidationError("--summary is about all packets, so it excludes --filter")
        }
    }

    func run() async throws {
        let stop = CancellationToken()
        try await withTaskCancellationHandler {
            try decode(stop)
        } onCancel: {
            stop.cancel()
        }
        try Task.checkCancellation()
    }

    private func decode(_ stop: CancellationToken) throws {
        var reader =
            try file == "-" ? CaptureFileReader.standardInput(stop: stop) : CaptureFileReader(path: file, stop: stop)
        var printer = PacketPrinter(options, printsPackets: !summary, summarizes: summary)
        var problem: CaptureFileError?
        do throws(CaptureFileError) {
            // The printer is flushed before the reader waits for more.
            while printer.failure == nil, let record = try reader.next(beforeWaiting: { printer.flush() }) {
                printer.take(record)
            }
        } catch {
            problem = error
        }
        try printer.finish(isEmpty: reader.recordCount == 0 && problem != nil)
        if let problem { throw problem }
    }
}
