import ArgumentParser
import BLE
import BLEExamples
import BLEProfiles
import CoreBluetooth
import Glibc

/// An example, with both ends in one process on two software controllers, or with one end against a real peer.
struct Demo: AsyncParsableCommand {
    /// Which ends of the example run here.
    enum Roles: String, ExpressibleByArgument, CaseIterable {
        case peripheral
        case central
        case both
    }

    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Let two apps for phones talk, without any hardware.",
        discussion: """
            Both ends of an example meet on two controllers in this process. With --role, one end runs on the \
            controller that --adapter names until it has seen all that it waits for, or until it is stopped; the other \
            end is elsewhere: on a phone, or another `ble demo`. The examples:

            \(Example.all.map { "  \($0.name): \($0.summary)." }.joined(separator: "\n"))
            """
    )

    @Argument(help: "Which example.", completion: .list(Example.all.map(\.name)))
    var name = Example.all[0].name

    @Option(help: "Which end runs here: peripheral, central or both.")
    var role = Roles.both

    @OptionGroup var controller: AdapterOptions

    @OptionGroup var state: StateOptions

    @Option(
        help: ArgumentHelp("Write the HCI traffic to this file (btsnoop, or .pcapng).", valueName: "file"),
        completion: .file()
    )
    var capture: String?

    @Flag(help: "Replace keys by zeros in the capture, so that it can be shared.")
    var maskKeys = false

    @Option(
        help: ArgumentHelp("The file whose text texttransfer sends, or - for standard input.", valueName: "file"),
        completion: .file()
    )
    var text: String?

    @Flag(help: "List the examples.")
    var list = false

    @Flag(help: "Print lines of JSON.")
    var json = false

    private var example: Example? { Example.all.first { $0.name == name } }

    func validate() throws {
        if example == nil {
            let names = Example.all.map(\.name).joined(separator: ", ")
            throw ValidationError("there is no example \"\(name)\"; the examples are \(names)")
        }
        if role == .both, controller.adapter != nil {
            throw ValidationError("--adapter goes with --role central or --role peripheral")
        }
        if role == .both, state.stateDir != nil {
            throw ValidationError("--state-dir goes with --role central or --role peripheral")
        }
        if text != nil, name != "texttransfer" || role == .central {
            throw ValidationError("--text goes with an example that sends one: texttransfer")
        }
    }

    func run() async throws {
        if list { return try printList() }
        // The managers of an app read this variable.
        if let directory = state.stateDir { unsafe setenv("BLE_STATE_DIR", directory, 1) }
        let path = capture ?? "\(environment("TMPDIR") ?? "/tmp")/ble-demo-\(getpid()).btsnoop"
        let ends = try await performances(capturePath: path)
        let conversation = Conversation(hasColumns: ends.count > 1, asJSON: json)
        try conversation.header()
        for end in ends { await end.performance.begin() }
        let isOpen = await HostRegistry.settle()
        let isDone: Void? = try await within(role == .both ? Demo.patience : nil) {
            if isOpen { try await converse(ends, conversation) }
        }
        await uncancelled {
            for end in ends { await end.performance.end() }
            _ = await HostRegistry.settle()
        }
        try Task.checkCancellation()
        if !isOpen { throw DemoError.noController }
        for end in ends {
            if let missing = end.performance.missing.first { throw DemoError.notSeen(end.role, missing, Demo.patience) }
        }
        if isDone == nil { throw BLEError.timedOut("the demo") }
        try conversation.footer(capturePath: path)
    }

    /// Time limit for both ends together, much longer than they need.
    private static let patience = Duration.seconds(15)

    private func printList() throws {
        for example in Example.all {
            if json {
                try Output.standard.json(["name": .string(example.name), "summary": .string(example.summary)])
            } else {
                try Output.standard.line("\(example.name.padded(to: 14))\(example.summary)")
            }
        }
    }

    // MARK: The ends

    private struct End: Sendable {
        let role: Example.Role
        let performance: Performance
    }

    private func performances(capturePath: String) async throws -> [End] {
        var named = self.example
        if let text {
            named = Example.textTransfer(sending: String(decoding: try await File.read(text), as: UTF8.self))
        }
        guard let example = named else { return [] }
        return switch role {
        case .both:
            Example.Role.allCases.map { end(example, $0, capturePath: $0 == .central ? capturePath : nil) }
        case .peripheral: [end(example, .peripheral, capturePath: capturePath)]
        case .central: [end(example, .central, capturePath: capturePath)]
        }
    }

    /// Makes an end, on the demo's virtual air if both ends run here, otherwise on the selected adapter.
    private func end(_ example: Example, _ role: Example.Role, capturePath: String?) -> End {
        var options: [String: any Sendable] = [:]
        if self.role == .both {
            options[CBCentralManagerOptionAdapterKey] = "\(AdapterSpecification.virtual(name: "demo"))"
        } else if let adapter = controller.adapter {
            options[CBCentralManagerOptionAdapterKey] = "\(adapter)"
        }
        options[CBCentralManagerOptionCaptureKey] = capturePath
        options[CBCentralManagerOptionCaptureMasksKeysKey] = maskKeys
        return End(role: role, performance: Performance(example, role, options: options))
    }

    /// Shows the lines of each end until it has shown all expected lines, then closes it.
    private func converse(_ ends: [End], _ conversation: Conversation) async throws {
        try await withThrowingTaskGroup { group in
            for end in ends {
                group.addTask {
                    for await line in end.performance.lines { try conversation.show(line, end.role) }
                    await end.performance.end()
                }
            }
            try await group.waitForAll()
        }
    }
}

/// An example did not run as expected.
private enum DemoError: Error, CustomStringConvertible {
    /// The reason was printed when the controller was opened.
    case noController
    case notSeen(Example.Role, String, Duration)

    var description: String {
        switch self {
        case .noController: "the demo has no controller"
        case .notSeen(let role, let line, let patience):
            "the \(role) has not shown \"\(line)\" within \(Seconds(patience))"
        }
    }
}

/// The lines of both ends, each in its column, with the time since the start.
private struct Conversation: Sendable {
    let hasColumns: Bool
    let asJSON: Bool
    private let start = ContinuousClock.now
    private let width = BLETool.Terminal.isPresent ? BLETool.Terminal.size.width : nil

    private static let stampWidth = 10
    private static let greatestColumnWidth = 44

    init(hasColumns: Bool, asJSON: Bool) {
        self.hasColumns = hasColumns
        self.asJSON = asJSON
    }

    func header() throws {
        guard hasColumns, !asJSON else { return }
        let rule = String(repeating: "-", count: columnWidth - 2)
        try Output.standard.line("    time  " + "peripheral".padded(to: columnWidth) + "central")
        try Output.standard.line("   -----  " + rule.padded(to: columnWidth) + rule)
    }

    func show(_ line: String, _ role: Example.Role) throws {
        if asJSON {
            return try Output.standard.json([
                "event": "shown", "role": .string(role.rawValue), "text": .string(line),
                "time": .decimal(Double(microsecondsSinceEpoch()) / 1e6),
            ])
        }
        let indent = hasColumns && role == .central ? columnWidth : 0
        let text = terminalSafe(line)
        let fitted = width.map { text.fitted(to: $0 - Self.stampWidth - indent) } ?? text
        try Output.standard.line("\(stamp)  " + String(repeating: " ", count: indent) + fitted)
    }

    func footer(capturePath: String) throws {
        if asJSON { return try Output.standard.json(["event": "done", "capture": .string(capturePath)]) }
        try Output.standard.line("\nThe \(hasColumns ? "central's " : "")HCI traffic is in \(capturePath)")
    }

    /// Half of the terminal's width, without the column of the time.
    private var columnWidth: Int {
        min(Self.greatestColumnWidth, width.map { max(20, ($0 - Self.stampWidth) / 2) } ?? .max)
    }

    /// Seconds and milliseconds.
    private var stamp: String {
        let milliseconds = Int((ContinuousClock.now - start) / .milliseconds(1))
        let fraction = String(1000 + milliseconds % 1000).dropFirst()
        let text = "\(milliseconds / 1000).\(fraction)"
        return String(repeating: " ", count: max(0, 8 - text.count)) + text
    }
}
