import Dispatch
import FoundationEssentials
import Synchronization

/// The persistent state of a host: one JSON file for each adapter, of sections that each belong to one part of the
/// host.
///
/// Sections that are unknown to this process stay as they are. State that must not be lost is written at once. Other
/// changes are written a moment later, several together, on a queue of the store's own. One process uses the file at a
/// time: a second one reads it, and keeps its own changes in memory. A file that cannot be read as JSON is saved under
/// another name, and a file of a later format is not changed; ``problem`` says so.
///
/// Beside the file there is a directory of caches, with a file each. Caches hold values that can be obtained again,
/// such as the databases of peers. Losing one loses nothing else.
package final class KeyStore: Sendable {
    /// Makes a section's value when the section is written, and when it is read before that.
    package typealias Source = @Sendable () -> any Encodable

    struct State {
        var document: StateDocument
        /// The right to replace the file, while the store is open and has the file for itself.
        var lock: StateLock?
        var problem: String?
        var changes: [String: Source] = [:]
        /// The changes that a write in progress has taken.
        var changesInWrite: [String: Source] = [:]
        /// Caches to replace, or to remove if the source is nil.
        var cacheChanges: [String: Source?] = [:]
        /// Whether caches were removed, and the removal may not survive a loss of power.
        var isCacheRemovalUncertain = false
        /// When changes of ``KeyStore/saveSoon(_:caches:)`` were last written.
        var lastDeferredWrite: DispatchTime?
        var waiting: [@Sendable (Bool) -> Void] = []
        var isWriteScheduled = false
        var hasWarned = false
        /// Whether the file may differ from the document, because replacing it has failed at any step.
        var isUncertain = false
        var writeCount = 0
        /// The name of the copy of the original file, once something in it was not understood.
        var copy: String?
    }

    let state: Mutex<State>
    let file: StateFile?
    let writeDelay: DispatchTimeInterval
    let queue: DispatchQueue
    let warn: @Sendable (String) -> Void

    private init(
        _ document: StateDocument,
        file: StateFile?,
        lock: StateLock?,
        queue: DispatchQueue,
        writeDelay: DispatchTimeInterval,
        problem: String? = nil,
        warn: @escaping @Sendable (String) -> Void
    ) {
        state = Mutex(State(document: document, lock: lock, problem: problem))
        self.file = file
        self.queue = queue
        self.writeDelay = writeDelay
        self.warn = warn
    }

    private static func makeQueue() -> DispatchQueue {
        DispatchQueue(label: "swift-ble.key-store", qos: .utility)
    }

    // MARK: Opening

    /// A store in memory, without a file.
    ///
    /// - Parameter problem: why there is no file; nil if none is wanted.
    package static func inMemory(problem: String? = nil) -> KeyStore {
        KeyStore(
            StateDocument(),
            file: nil,
            lock: nil,
            queue: makeQueue(),
            writeDelay: .never,
            problem: problem,
            warn: { _ in }
        )
    }

    /// Opens the store of an adapter.
    ///
    /// - Parameters:
    ///   - adapter: names the adapter, such as by its address.
    ///   - directory: the directory of the file; nil if there is none, which is a problem: the store is in memory then.
    ///   - writeDelay: how long changes are gathered before they are written.
    ///   - warn: receives warnings for the user, one line each.
    package static func open(
        adapter: String,
        in directory: String?,
        writeDelay: DispatchTimeInterval = .seconds(1),
        warn: @escaping @Sendable (String) -> Void
    ) async -> KeyStore {
        guard let directory else {
            let problem = "no directory for the state of \(adapter): set BLE_STATE_DIR to keep it over restarts"
            warn(problem)
            return inMemory(problem: problem)
        }
        let queue = makeQueue()
        let file = StateFile(directory: directory, name: fileName(of: adapter))
        return await withCheckedContinuation { continuation in
            queue.async {
                let loaded = load(file, warn)
                continuation.resume(
                    returning: KeyStore(
                        loaded.document,
                        file: file,
                        lock: loaded.lock,
                        queue: queue,
                        writeDelay: writeDelay,
                        problem: loaded.problem,
                        warn: warn
                    )
                )
            }
        }
    }

    /// The name of an adapter's file: letters, digits and hyphens, whatever the adapter's name contains.
    package static func fileName(of adapter: String) -> String {
        String(adapter.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" }) + ".json"
    }

    /// Reads a file without changing it: nothing is repaired, and nothing is written.
    package static func inspect(
        _ file: StateFile,
        warn: @escaping @Sendable (String) -> Void
    ) throws(StateFileError) -> KeyStore {
        try file.checkDirectory()
        let document: StateDocument
        if let contents = try file.read() {
            document = try StateDocument(reading: file, contents.data)
        } else {
            document = StateDocument()
        }
        return KeyStore(document, file: file, lock: nil, queue: makeQueue(), writeDelay: .never, warn: warn)
    }

    /// Opens a file for changes while no host uses it. Damage that a host would repair or ignore is an error.
    package static func edit(
        _ file: StateFile,
        warn: @escaping @Sendable (String) -> Void
    ) throws(StateFileError) -> KeyStore {
        try file.checkDirectory()
        let lock = try StateLock(file)
        var document = StateDocument()
        if let contents = try file.read() { document = try StateDocument(reading: file, contents.data) }
        return KeyStore(document, file: file, lock: lock, queue: makeQueue(), writeDelay: .never, warn: warn)
    }

    private struct Loaded {
        var document = StateDocument()
        /// The right to replace the file; nil if it may not be replaced.
        var lock: StateLock?
        var problem: String?
    }

    private static func load(_ file: StateFile, _ warn: (String) -> Void) -> Loaded {
        var loaded = Loaded()
        func report(_ problem: String) {
            warn(problem)
            loaded.problem = loaded.problem ?? problem
        }
        do throws(StateFileError) {
            try file.checkDirectory()
        } catch {
            report("\(error): nothing is saved")
            return loaded
        }
        do throws(StateFileError) {
            loaded.lock = try StateLock(file)
        } catch {
            report("\(error): changes are not saved")
        }
        do throws(StateFileError) {
            guard let contents = try file.read() else { return loaded }
            if let mode = contents.laxMode {
                try file.tighten()
                warn(
                    "\(file.path) could be read or changed by others (mode \(String(mode, radix: 8))): only its owner can "
                        + "use it now; if others may have read its keys, remove the bonds and pair again"
                )
            }
            do throws(StateFileError) {
                loaded.document = try StateDocument(reading: file, contents.data)
            } catch .damaged where loaded.lock != nil {
                // The damaged file also stays in place until it is replaced, so the next process finds it if this one
                // writes nothing.
                let other = try file.copyAside()
                report("\(file.path) is damaged: it is kept as \(other), and a new one is begun")
            }
        } catch {
            // With several reasons, the first is reported.
            if loaded.lock != nil {
                report("\(error): nothing is saved")
            } else {
                loaded.problem = loaded.problem ?? "\(error)"
            }
            loaded.lock = nil
        }
        return loaded
    }

    // MARK: Sections

    /// Whether changes are written to a file.
    package var isPersistent: Bool { state.withLock { $0.lock != nil } }

    /// The reason why the file could not be used as it was found, or why changes are not saved; nil if both succeed.
    ///
    /// With a problem, identity and bonds may be missing although the host had some before.
    package var problem: String? { state.withLock { $0.problem } }

    /// Whether there are changes that are not in the file. After ``close()`` these are lost.
    package var hasUnsavedChanges: Bool { state.withLock { !$0.changes.isEmpty || $0.isUncertain } }

    /// The number of times that the file was replaced since the store was opened.
    package var writeCount: Int { state.withLock { $0.writeCount } }

    /// The path of the file; nil for a store in memory.
    package var path: String? { file?.path }

    /// Returns a section with its last change, whether or not that is written; nil if it does not exist or cannot be
    /// decoded.
    package func section<Value: Decodable>(_ name: String, as type: Value.Type) -> Value? {
        let (change, saved) = state.withLock { state in
            (state.changes[name] ?? state.changesInWrite[name], state.document.sections[name])
        }
        // Not under the lock: a source may use a lock of its own.
        let changed = change.flatMap { try? JSONEncoder().encode($0()) }
        guard let octets = changed ?? saved.flatMap({ try? JSONEncoder().encode($0) }) else { return nil }
        do {
            return try JSONDecoder().decode(type, from: octets)
        } catch {
            reportDamage("the section \(name) of \(path ?? "the state") is not understood and starts empty")
            return nil
        }
    }

    /// Whether a section exists, even if it is not written yet or cannot be decoded.
    package func hasSection(_ name: String) -> Bool {
        state.withLock { state in
            state.changes[name] != nil || state.changesInWrite[name] != nil || state.document.sections[name] != nil
        }
    }

    /// Warns of content that was not understood and will not be written again. The original file is first copied under
    /// another name. If this fails, nothing is saved from then on, so that the file stays.
    package func reportDamage(_ text: String) {
        state.withLock { $0.problem = $0.problem ?? text }
        guard let file, isPersistent else { return warn(text) }
        do throws(StateFileError) {
            let known = state.withLock { $0.copy }
            let copy = if let known { known } else { try file.copyAside() }
            state.withLock { $0.copy = copy }
            warn("\(text); the file as it was is kept as \(copy)")
        } catch {
            let lock = state.withLock { $0.lock.take() }
            // Released on the queue, so that no write is under way.
            queue.async { withExtendedLifetime(lock) {} }
            warn("\(text); \(error): nothing is saved")
        }
    }

    /// Schedules a write of a changed section; `value` is called when the section is written.
    package func change(_ name: String, to value: @escaping Source) {
        let mustSchedule = state.withLock { state in
            state.changes[name] = value
            guard state.lock != nil, !state.isWriteScheduled else { return false }
            state.isWriteScheduled = true
            return true
        }
        if mustSchedule { queue.asyncAfter(deadline: .now() + writeDelay) { self.write() } }
    }

    /// Writes sections, and all other changes, as soon as a write in progress has ended.
    ///
    /// - Parameters:
    ///   - caches: caches to replace, or to remove if the source is nil.
    ///   - completion: called on the store's queue: with true once the sections will survive the end of the process and
    ///     a loss of power, or with false if they cannot be saved.
    package func save(
        _ sections: [String: Source],
        caches: [String: Source?] = [:],
        completion: (@Sendable (Bool) -> Void)? = nil
    ) {
        state.withLock { state in
            state.changes.merge(sections) { _, newer in newer }
            state.cacheChanges.merge(caches) { _, newer in newer }
            if let completion { state.waiting.append(completion) }
        }
        queue.async { self.write() }
    }

    /// Writes sections that may change often: the first change at once, later ones together, one write per
    /// `writeDelay`.
    ///
    /// So a single change is saved without delay, and a peer that causes changes again and again causes at most one
    /// write per `writeDelay`. ``save(_:caches:completion:)``, ``flush()`` and ``close()`` write pending changes.
    package func saveSoon(_ sections: [String: Source], caches: [String: Source?] = [:]) {
        let start: DispatchTime? = state.withLock { state in
            state.changes.merge(sections) { _, newer in newer }
            state.cacheChanges.merge(caches) { _, newer in newer }
            guard state.lock != nil, !state.isWriteScheduled else { return nil }
            state.isWriteScheduled = true
            let now = DispatchTime.now()
            let start = max(state.lastDeferredWrite.map { $0 + writeDelay } ?? now, now)
            state.lastDeferredWrite = start
            return start
        }
        if let start { queue.asyncAfter(deadline: start) { self.write() } }
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

    /// Waits until all changes are in the file, and releases the file for others. Later changes are not saved.
    package func close() async {
        await flush()
        // On the queue, so that no write is under way.
        await withCheckedContinuation { continuation in
            queue.async {
                let lock = self.state.withLock { $0.lock.take() }
                withExtendedLifetime(lock) {}
                continuation.resume()
            }
        }
    }
}
