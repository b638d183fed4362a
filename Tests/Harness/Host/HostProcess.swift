import Glibc

/// The host under test, as a separate process.
final class HostProcess {
    /// The way in which the process ended.
    enum End: Equatable, CustomStringConvertible {
        case status(Int32)
        case signal(Int32)

        var description: String {
            switch self {
            case .status(let status): "status \(status)"
            case .signal(let signal): "signal \(signal) (\(strsignal(signal).map { String(cString: $0) } ?? "unknown"))"
            }
        }
    }

    let processID: pid_t
    private(set) var output: LinePipe
    private(set) var errors: LinePipe
    private(set) var end: End?
    private var input: Descriptor?

    /// Starts a command. Words like `NAME=value` before the program are environment variables.
    ///
    /// - Parameters:
    ///   - folders: the folders that are searched for the program before the search path.
    init(
        command: [String],
        environment: [String: String],
        folders: [String]
    ) throws(SystemError) {
        let assignments = command.prefix { $0.contains("=") && !$0.hasPrefix("-") }
        var variables = environment
        for word in assignments {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            variables[String(parts[0])] = String(parts[1])
        }
        let words = Array(command.dropFirst(assignments.count))
        guard let name = words.first else { throw SystemError(code: ENOENT) }
        let (inputReader, inputWriter) = try HostProcess.pipe()
        let (outputReader, outputWriter) = try HostProcess.pipe()
        let (errorReader, errorWriter) = try HostProcess.pipe()
        processID = try HostProcess.spawn(
            HostProcess.find(name, in: folders),
            words,
            variables,
            streams: [inputReader, outputWriter, errorWriter]
        )
        input = inputWriter
        output = LinePipe(outputReader)
        errors = LinePipe(errorReader)
    }

    deinit {
        guard end == nil else { return }
        kill(processID, SIGKILL)
        _ = waitpid(processID, nil, 0)
    }

    /// Whether both output streams have ended, as they do when the process ends.
    var hasEndedStreams: Bool { output.hasEnded && errors.hasEnded }

    /// Records the end of the process, if it has ended.
    func reap() {
        guard end == nil else { return }
        var status: Int32 = 0
        guard waitpid(processID, &status, WNOHANG) == processID else { return }
        let signal = status & 0x7F
        end = signal == 0 ? .status(status >> 8 & 0xFF) : .signal(signal)
        Interruption.shared.host = nil
    }

    func terminate() {
        if end == nil { kill(processID, SIGTERM) }
    }

    func write(_ line: String) throws(SystemError) {
        guard let input else { throw SystemError(code: EPIPE) }
        let octets = Array((line + "\n").utf8)
        _ = try uninterrupted { Glibc.write(input.number, octets, octets.count) }
    }

    /// Reads the available output from the readable descriptors.
    func receive(from descriptors: Set<Int32>) {
        if descriptors.contains(output.descriptor) { output.receive() }
        if descriptors.contains(errors.descriptor) { errors.receive() }
    }

    func takeOutput(containing text: String) -> Bool { output.take(text) }

    func takeErrors(containing text: String) -> Bool { errors.take(text) }

    // MARK: Starting

    private static func pipe() throws(SystemError) -> (reader: Descriptor, writer: Descriptor) {
        var ends: [Int32] = [-1, -1]
        guard Glibc.pipe(&ends) == 0 else { throw SystemError.last }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (try Descriptor(ends[0]), try Descriptor(ends[1]))
    }

    /// A program's path: unchanged if it contains a folder, else the first match.
    private static func find(_ name: String, in folders: [String]) -> String {
        if name.contains("/") { return name }
        let searched = getenv("PATH").map { String(cString: $0).split(separator: ":").map(String.init) } ?? []
        return (folders + searched).map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 } ?? name
    }

    private static func spawn(
        _ path: String,
        _ words: [String],
        _ variables: [String: String],
        streams: [Descriptor]
    ) throws(SystemError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (number, stream) in streams.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, stream.number, Int32(number))
        }
        // The harness handles these signals itself. The host must have their default actions.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGINT, SIGTERM, SIGPIPE] { sigaddset(&signals, signal) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))

        var environment = inheritedEnvironment.filter { line in
            !variables.keys.contains { line.hasPrefix("\($0)=") }
        }
        environment += variables.map { "\($0)=\($1)" }
        let arguments = words.map { strdup($0) } + [nil]
        let surroundings = environment.map { strdup($0) } + [nil]
        defer { for string in arguments + surroundings { free(string) } }
        var processID: pid_t = 0
        let error = posix_spawn(&processID, path, &actions, &attributes, arguments, surroundings)
        guard error == 0 else { throw SystemError(code: error) }
        Interruption.shared.host = processID
        return processID
    }

    private static var inheritedEnvironment: [String] {
        var lines: [String] = []
        var entry = environ
        while let line = entry.pointee {
            lines.append(String(cString: line))
            entry += 1
        }
        return lines
    }
}

extension HostProcess {
    /// The signals that end a process that was asked to end.
    static let asked: Set<Int32> = [SIGTERM, SIGINT]
}
