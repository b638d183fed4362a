import CBLEBluetooth
import Dispatch
import Glibc
import Synchronization

/// Runs scripts and captures, each with a separate host and socket.
struct Runner {
    /// Maximum time for a host to open its adapter.
    static let patienceForStart = Duration.seconds(60)

    var listen: ListenAddress?
    /// The host's command line; it replaces that of a script.
    var host: [String] = []
    /// The folders that are searched for programs first.
    var programFolders: [String] = []
    /// The abilities of the host, of those that scripts may need.
    var abilities: Set<String> = []
    var patience = Duration.seconds(10)
    var isVerbose = false

    /// The reason why a run did not finish.
    struct Failure: Error {
        /// The lines of the report; the first one has the position.
        let report: [String]
    }

    func run(_ script: Script) throws {
        try run(script.host, folder: folder(of: script.path), controller: script.controller) { exchange in
            for line in script.lines {
                do throws(Difference) {
                    try exchange.perform(line.statement)
                } catch {
                    throw Failure(at: "\(line.file):\(line.number): \(line.text)", error, exchange.journal)
                }
            }
        }
    }

    func run(_ capture: CapturePlayer, _ allowances: CapturePlayer.Allowances, path: String) throws {
        try run([], folder: folder(of: path), controller: Controller()) { exchange in
            do throws(Difference) {
                try capture.play(on: exchange, allowances)
                exchange.controller = Controller()
            } catch {
                throw Failure(at: path, error, exchange.journal)
            }
        }
    }

    private func run(
        _ usualHost: [String],
        folder: String,
        controller: Controller,
        _ body: (Exchange) throws -> Void
    ) throws {
        let temporary = try TemporaryFolder()
        let exchange = Exchange(
            try Endpoint(listen ?? .seqpacket(path: temporary.path + "/hci")),
            patience: patience
        )
        exchange.journal.isShownAtOnce = isVerbose
        do throws(Difference) {
            try exchange.settle(as: controller)
            let command = (host.isEmpty ? usualHost : host).map {
                $0.replacing("{adapter}", with: exchange.endpoint.adapter)
                    .replacing("{here}", with: folder).replacing("{directory}", with: temporary.path)
            }
            if command.isEmpty {
                printError("listening: a host can use the adapter \(exchange.endpoint.adapter)")
            } else {
                exchange.host = try start(command, adapter: exchange.endpoint.adapter)
            }
            try exchange.acceptHost(within: Runner.patienceForStart)
        } catch {
            throw Failure(at: "before the first line", error, exchange.journal)
        }
        try body(exchange)
        do throws(Difference) {
            try exchange.finish()
        } catch {
            throw Failure(at: "after the last line", error, exchange.journal)
        }
    }

    private func start(_ command: [String], adapter: String) throws(Difference) -> HostProcess {
        do throws(SystemError) {
            return try HostProcess(
                command: command,
                environment: ["BLE_ADAPTER": adapter],
                folders: programFolders
            )
        } catch {
            throw Difference("\(command.joined(separator: " ")) cannot be started: \(error)")
        }
    }
}

extension Runner.Failure {
    init(at place: String, _ difference: Difference, _ journal: Journal) {
        report =
            [place, difference.message] + difference.details
            + (journal.lines.isEmpty ? [] : ["last:"] + journal.lines.map { "  " + $0 })
    }
}

extension Script {
    /// The first controller of the script.
    var controller: Controller {
        for line in lines {
            if case .controller(let controller) = line.statement { return controller }
        }
        return Controller()
    }
}

extension Exchange {
    /// Lets the kernel set up its virtual controller and then release it. Otherwise a host cannot open the controller
    /// exclusively.
    func settle(as preset: Controller) throws(Difference) {
        guard let index = endpoint.adapterIndex else { return }
        controller = preset
        defer { controller = nil }
        let deadline = ContinuousClock.now + .seconds(30)
        var closing: AdapterClosing?
        while closing?.isDone != true {
            while let message = try nextMessage() {
                _ = try answer(message)
                // The kernel has begun. Closing waits for the kernel, and the kernel waits for our answers.
                if closing == nil { closing = AdapterClosing(of: index) }
            }
            _ = try wait(until: min(deadline, .now + .milliseconds(20)))
            guard ContinuousClock.now < deadline else { throw Difference("the kernel does not let go of hci\(index)") }
        }
    }
}

/// Makes the kernel bring an adapter down on another thread, because this blocks.
private final class AdapterClosing: Sendable {
    private let isClosed = Mutex(false)

    init(of index: UInt16) {
        DispatchQueue.global().async {
            let socket = try? Descriptor(ble_hci_socket())
            if let socket { _ = ble_hci_bring_down(socket.number, index) }
            self.isClosed.withLock { $0 = true }
        }
    }

    var isDone: Bool { isClosed.withLock { $0 } }
}
