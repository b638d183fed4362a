import Dispatch
import FoundationEssentials
import Synchronization

/// What a host keeps over restarts: one JSON file for each adapter, of sections that each belong to one part of the host.
///
/// Sections that nobody in this process knows stay as they are. What must not be lost is written at once, the rest a moment
/// later, several changes together, on a queue of the store's own. The file is one user's at a time: who comes second has
/// what is in it, and keeps its own changes in memory. A file that cannot be read as JSON is set aside under another name,
/// and a file of a later format is left alone.
package final class KeyStore: Sendable {
    /// Makes a section's value when it is written.
    package typealias Source = @Sendable () -> any Encodable

    private struct State {
        var document: StateDocument
        /// What may be replaced, as long as the store is open and has it for itself.
        var lock: StateLock?
        var changes: [String: Source] = [:]
        var waiting: [@Sendable (Bool) -> Void] = []
        var isWriteScheduled = false
        var hasWarned = false
        var writeCount = 0
        /// The name under which the file as it was found is kept, once something in it was not understood.
        var copy: String?
    }

    private let state: Mutex<State>
    private let file: StateFile?
    private let writeDelay: DispatchTimeInterval
    private let queue: DispatchQueue
    private let warn: @Sendable (String) -> Void

    private init(
        _ document: StateDocument,
        file: StateFile?,
        lock: StateLock?,
        queue: DispatchQueue,
        writeDelay: DispatchTimeInterval,
        warn: @escaping @Sendable (String) -> Void
    ) {
        state = Mutex(State(document: document, lock: lock))
        self.file = file
        self.queue = queue
        self.writeDelay = writeDelay
        self.warn = warn
    }

    private static func makeQueue() -> DispatchQueue {
        DispatchQueue(label: "swift-ble.key-store", qos: .utility)
    }

    // MARK: Opening

    /// A store that is gone with the process.
    package static func inMemory() -> KeyStore {
        KeyStore(StateDocument(), file: nil, lock: nil, queue: makeQueue(), writeDelay: .never) { _ in }
    }

    /// Opens the store of an adapter.
    ///
    /// - Parameters:
    ///   - adapter: names the adapter, such as by its address.
    ///   - directory: where the file is; nil for a store in memory.
    ///   - writeDelay: how long changes are gathered before they are written.
    ///   - warn: takes what the user should know, a line each.
    package static func open(
        adapter: String,
        in directory: String?,
        writeDelay: DispatchTimeInterval = .seconds(1),
        warn: @escaping @Sendable (String) -> Void
    ) async -> KeyStore {
        guard let directory else {
            warn("no directory for the state of \(adapter): set BLE_STATE_DIR to keep it over restarts")
            return inMemory()
        }
        let queue = makeQueue()
        let file = StateFile(directory: directory, name: fileName(of: adapter))
        return await withCheckedContinuation { continuation in
            queue.async {
                let (document, lock) = load(file, warn)
                continuation.resume(
                    returning: KeyStore(
                        document,
                        file: file,
                        lock: lock,
                        queue: queue,
                        writeDelay: writeDelay,
                        warn: warn
                    )
                )
            }
        }
    }

    /// An adapter's file: letters, digits and hyphens, whatever the adapter's name holds.
    package static func fileName(of adapter: String) -> String {
        String(adapter.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" }) + ".json"
    }

    /// What a file holds now, for who only looks at it: nothing is repaired, and nothing written.
    package static func inspect(
        _ file: StateFile,
        warn: @escaping @Sendable (String) -> Void
    ) throws(StateFileError) -> KeyStore {
        let document: StateDocument
        if let contents = try file.read() {
            document = try StateDocument(reading: file, contents.data)
        } else {
            document = StateDocument()
        }
        return KeyStore(document, file: file, lock: nil, queue: makeQueue(), writeDelay: .never, warn: warn)
    }

    /// Opens a file to change what is in it while no host uses it; what a host would put right or do without is an error.
    package static func edit(
        _ file: StateFile,
        warn: @escaping @Sendable (String) -> Void
    ) throws(StateFileError) -> KeyStore {
        let lock = try StateLock(file)
        var document = StateDocument()
        if let contents = try file.read() { document = try StateDocument(reading: file, contents.data) }
        return KeyStore(document, file: file, lock: lock, queue: makeQueue(), writeDelay: .never, warn: warn)
    }

    /// What a file holds; and what shows that it may be replaced, nil where it may not.
    private static func load(_ file: StateFile, _ warn: (String) -> Void) -> (StateDocument, StateLock?) {
        let lock: StateLock?
        do throws(StateFileError) {
            lock = try StateLock(file)
        } catch {
            warn("\(error): what changes is not kept over this run")
            lock = nil
        }
        do throws(StateFileError) {
            guard let contents = try file.read() else { return (StateDocument(), lock) }
            if let mode = contents.laxMode {
                try file.tighten()
                warn(
                    "\(file.path) could be read or changed by others (mode \(String(mode, radix: 8))): it is its owner's "
                        + "alone now; where others may have read the keys in it, remove the bonds and pair anew"
                )
            }
            do throws(StateFileError) {
                return (try StateDocument(reading: file, contents.data), lock)
            } catch .damaged where lock != nil {
                let other = try file.setAside()
                warn("\(file.path) is damaged: it is kept as \(other), and a new one is begun")
                return (StateDocument(), lock)
            }
        } catch {
            // The first reason is told.
            if lock != nil { warn("\(error): nothing is kept over this run") }
            return (StateDocument(), nil)
        }
    }

    // MARK: Sections

    /// Whether changes are written to a file.
    package var isKept: Bool { state.withLock { $0.lock != nil } }

    /// How often the file was replaced since the store was opened.
    package var writeCount: Int { state.withLock { $0.writeCount } }

    /// Where the file is; nil for a store in memory.
    package var path: String? { file?.path }

    /// A section as it was when the store was opened, or when its last change was written; nil where it is not there or is
    /// not of this form.
    package func section<Value: Decodable>(_ name: String, as type: Value.Type) -> Value? {
        guard let section = state.withLock({ $0.document.sections[name] }),
            let octets = try? JSONEncoder().encode(section)
        else { return nil }
        do {
            return try JSONDecoder().decode(type, from: octets)
        } catch {
            reportDamage("the section \(name) of \(path ?? "the state") is not understood and starts anew")
            return nil
        }
    }

    /// Warns of something that was not understood and will not be written again; the file as it was found is kept under
    /// another name first.
    package func reportDamage(_ text: String) {
        guard let file, isKept else { return warn(text) }
        do throws(StateFileError) {
            let known = state.withLock { $0.copy }
            let copy = if let known { known } else { try file.copyAside() }
            state.withLock { $0.copy = copy }
            warn("\(text); the file as it was is kept as \(copy)")
        } catch {
            warn("\(text); \(error)")
        }
    }

    /// Takes note that a section has changed; `value` is asked for when it is written.
    package func change(_ name: String, to value: @escaping Source) {
        let mustSchedule = state.withLock { state in
            state.changes[name] = value
            guard state.lock != nil, !state.isWriteScheduled else { return false }
            state.isWriteScheduled = true
            return true
        }
        if mustSchedule { queue.asyncAfter(deadline: .now() + writeDelay) { self.write() } }
    }

    /// Writes sections, and what else has changed, as soon as what is being written is.
    ///
    /// - Parameter whenKept: is called on the store's queue, once they will outlive the process and the machine's power, or
    ///   with false where they cannot be kept.
    package func keep(_ sections: [String: Source], whenKept: (@Sendable (Bool) -> Void)? = nil) {
        state.withLock { state in
            state.changes.merge(sections) { _, newer in newer }
            if let whenKept { state.waiting.append(whenKept) }
        }
        queue.async { self.write() }
    }

    /// Waits until all changes are in the file.
    package func flush() async {
        await withCheckedContinuation { continuation in
            queue.async {
                self.write()
                continuation.resume()
            }
        }
    }

    /// Waits until all changes are in the file, and lets others have it; what changes later is not kept.
    package func close() async {
        await flush()
        let lock = state.withLock { $0.lock.take() }
        withExtendedLifetime(lock) {}
    }

    // MARK: Writing

    /// Called on the queue.
    private func write() {
        let (before, changes, waiting, canWrite) = state.withLock { state in
            defer {
                state.isWriteScheduled = false
                state.waiting = []
                if state.lock != nil { state.changes = [:] }
            }
            return (state.document, state.changes, state.waiting, state.lock != nil)
        }
        let isKept = canWrite && write(changes, onto: before)
        for whenKept in waiting { whenKept(isKept) }
    }

    /// Whether the file holds the changes now.
    private func write(_ changes: [String: Source], onto before: StateDocument) -> Bool {
        guard let file else { return false }
        var document = before
        var isComplete = true
        for (name, source) in changes {
            if let value = KeyStore.value(of: source()) { document.sections[name] = value } else { isComplete = false }
        }
        guard document != before else { return isComplete }
        guard let contents = document.encoded else { return false }
        do throws(StateFileError) {
            try file.replace(with: contents)
            state.withLock { state in
                state.document = document
                state.hasWarned = false
                state.writeCount += 1
            }
            return isComplete
        } catch {
            let isFirst = state.withLock { state in
                defer { state.hasWarned = true }
                // What could not be written is tried again with the next change.
                state.changes.merge(changes) { newer, _ in newer }
                return !state.hasWarned
            }
            if isFirst { warn("\(error): what changes is not kept until this succeeds") }
            return false
        }
    }

    private static func value(of encodable: any Encodable) -> JSONValue? {
        guard let octets = try? JSONEncoder().encode(encodable) else { return nil }
        return try? JSONDecoder().decode(JSONValue.self, from: octets)
    }
}
