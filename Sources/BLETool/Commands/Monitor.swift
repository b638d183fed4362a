import ArgumentParser
import BLECapture
import BLEHCITransport

struct Monitor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "monitor",
        abstract: "Show the HCI traffic of the kernel's adapters as it passes.",
        discussion: """
            All adapters are shown, whether the kernel's stack, BlueZ or a command of ble uses them. They are not \
            disturbed. The command runs until it is interrupted. It needs CAP_NET_RAW: run it as root, or grant it \
            with setcap.

            \(PacketOptions.explanation)
            """
    )

    @OptionGroup var options: PacketOptions

    @Flag(help: "Print a summary at the end: devices, links, procedures, errors, round trips.")
    var summary = false

    @Option(
        help: ArgumentHelp(
            "Write all packets to this file too, whatever is printed (btsnoop, or .pcapng).",
            valueName: "file"
        ),
        completion: .file()
    )
    var capture: String?

    @Flag(help: "Replace keys by zeros in the capture, so that it can be shared.")
    var maskKeys = false

    func run() async throws {
        let stop = CancellationToken()
        try await withTaskCancellationHandler {
            try monitor(stop)
        } onCancel: {
            stop.cancel()
        }
    }

    private func monitor(_ stop: CancellationToken) throws {
        var channel = try MonitorChannel(stop: stop)
        let file = try capture.map { path throws(TransportError) in
            // This command runs on no loop: the kernel keeps the packets, and counts those it drops.
            try CaptureFile(path: path, format: .monitor(path: path), masksKeys: maskKeys, mayWait: true, stop: stop)
        }
        var printer = PacketPrinter(options, printsPackets: true, summarizes: summary)
        try Monitor.print(&channel, with: &printer, to: file)
    }

    /// Prints the records of the channel, and appends them to a capture, until reading is stopped.
    ///
    /// - Throws: ``OutputError``, or a `TransportError` if the channel or the capture fails. The earlier records and
    ///   the summary are printed before.
    static func print(
        _ channel: inout MonitorChannel,
        with printer: inout PacketPrinter,
        to file: CaptureFile?
    ) throws {
        var problem: TransportError?
        do throws(TransportError) {
            while printer.failure == nil, let record = try channel.next(beforeWaiting: { printer.flush() }) {
                file?.append(record)
                printer.take(record)
                if let failure = file?.failure { throw failure }
            }
        } catch {
            problem = error
        }
        try printer.finish()
        if channel.drops > 0 {
            Output.complain(
                "\(channel.drops) packets are missing, because they arrived faster than they could be printed"
            )
        }
        if let problem { throw problem }
    }
}
