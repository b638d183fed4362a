import ArgumentParser
import Capture
import HCITransport

struct Monitor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "monitor",
        abstract: "Show the HCI traffic of the kernel's adapters as it passes.",
        discussion: """
            All adapters are shown, whoever uses them: the kernel's own stack, BlueZ, a command of ble. Nothing is taken from \
            them. It goes on until it is interrupted. The program needs CAP_NET_RAW: run it as root, or grant it with setcap.

            \(PacketOptions.explanation)
            """
    )

    @OptionGroup var options: PacketOptions

    @Flag(help: "Print at the end what has passed as a whole: devices, links, procedures, errors, round trips.")
    var summary = false

    @Option(
        help: ArgumentHelp(
            "Write all that passes to this file too, whatever is printed (btsnoop, or .pcapng).",
            valueName: "file"
        )
    )
    var capture: String?

    @Flag(help: "Replace keys by zeros in the capture, so that it can be given to others.")
    var maskKeys = false

    func run() async throws {
        let stop = ReadingStop()
        try await withTaskCancellationHandler {
            try monitor(stop)
        } onCancel: {
            stop.stop()
        }
    }

    private func monitor(_ stop: ReadingStop) throws {
        var channel = try MonitorChannel(stop: stop)
        let file = try capture.map { path throws(TransportError) in
            try CaptureFile(path: path, format: .monitor(path: path), masksKeys: maskKeys)
        }
        var printer = PacketPrinter(options, printsPackets: true, summarizes: summary)
        while printer.failure == nil, let record = try channel.next(beforeWaiting: { printer.flush() }) {
            file?.append(record)
            if let failure = file?.failure { throw failure }
            printer.take(record)
        }
        try printer.finish()
        if channel.drops > 0 {
            Output.complain("\(channel.drops) packets came faster than they could be shown and are missing")
        }
    }
}
