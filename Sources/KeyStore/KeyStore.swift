import Dispatch
import Foundation
import Synchronization

/// What a host keeps over restarts: one JSON file for each adapter, of sections that each belong to one part of the host.
///
/// Sections that nobody in this process knows stay as they are. Changes are written a moment later, several together, on a
/// queue of the store's own; ``flush()`` waits for that. A file that cannot be read as JSON is set aside under another name,
/// and a file of a later format is left alone: the store then keeps everything in memory.
package final class KeyStore: Sendable {
    /// Makes a section's value when it is written.
    package typealias Source = @Sendable () -> any Encodable

    private struct State {
        var sections: [String: JSONValue] = [:]
        var changes: [String: Source] = [:]
        var isWriteScheduled = false
        var hasWarned = false
    }

    /// The format that this version writes.
    static let format: Int64 = 1
    private static let formatKey = "format"

    private let state: Mutex<State>
    private let file: StateFile?
    private let writeDelay: DispatchTimeInterval
    private let queue: DispatchQueue
    private let warn: @Sendable (String) -> Void

    private init(
        _ sections: [String: JSONValue],
        file: StateFile?,
        queue: DispatchQueue,
        writeDelay: DispatchTimeInterval,
        warn: @escaping @Sendable (String) -> Void
    ) {
        state = Mutex(State(sections: sections))
        self.file = file
        self.queue = queue
        self.writeDelay = writeDelay
        self.warn = warn
    }

    /// A store that is gone with the process.
    package static func inMemory() -> KeyStore {
        KeyStore([:], file: nil, queue: makeQueue(), writeDelay: .never) { _ in }
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
                let (sections, isKept) = load(file, warn)
                let store = KeyStore(
                    sections,
                    file: isKept ? file : nil,
                    queue: queue,
                    writeDelay: writeDelay,
                    warn: warn
                )
                continuation.resume(returning: store)
            }
        }
    }

    private static func makeQueue() -> DispatchQueue {
        DispatchQueue(label: "swift-ble.key-store", qos: .utility)
    }

    /// An adapter's file: letters, digits and hyphens, whatever the adapter's name holds.
    static func fileName(of adapter: String) -> String {
        String(adapter.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" }) + ".json"
    }

    // MARK: Sections

    /// A section as it was when the store was opened, or when its last change was written; nil where it is not there or is
    /// not of this form.
    package func section<Value: Decodable>(_ name: String, as type: Value.Type) -> Value? {
        guard let section = state.withLock({ $0.sections[name] }),
            let octets = try? JSONEncoder().encode(section)
        else { return nil }
        do {
            return try JSONDecoder().decode(type, from: octets)
        } catch {
            warn("the section \(name) of \(file?.path ?? "the state") is not understood and starts anew: \(error)")
            return nil
        }
    }

    /// Takes note that a section has changed; `value` is asked for when it is written.
    package func change(_ name: String, to value: @escaping Source) {
        let mustSchedule = state.withLock { state in
            state.changes[name] = value
            guard file != nil, !state.isWriteScheduled else { return false }
            state.isWriteScheduled = true
            return true
        }
        if mustSchedule { queue.asyncAfter(deadline: .now() + writeDelay) { self.write() } }
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

    // MARK: The file

    /// What a file holds, and whether it may be replaced.
    private static func load(
        _ file: StateFile,
        _ warn: (String) -> Void
    ) -> (sections: [String: JSONValue], isKept: Bool) {
        do throws(StateFileError) {
            guard let contents = try file.read() else { return ([:], true) }
            guard let document = try? JSONDecoder().decode([String: JSONValue].self, from: contents),
                case .integer(let format)? = document[formatKey], format >= 1
            else {
                let other = try file.setAside()
                warn("\(file.path) is damaged: it is kept as \(other), and a new one is begun")
                return ([:], true)
            }
            guard format <= KeyStore.format else {
                warn("\(file.path) is of a later version and is left as it is: nothing is kept over this run")
                return ([:], false)
            }
            return (document.filter { $0.key != formatKey }, true)
        } catch {
            warn("\(error): nothing is kept over this run")
            return ([:], false)
        }
    }

    /// Called on the queue.
    private func write() {
        guard let file else { return }
        let (before, changes) = state.withLock { state in
            defer { state.changes = [:] }
            state.isWriteScheduled = false
            return (state.sections, state.changes)
        }
        guard !changes.isEmpty else { return }
        var sections = before
        for (name, source) in changes { sections[name] = KeyStore.value(of: source()) }
        state.withLock { $0.sections = sections }
        guard sections != before else { return }
        sections[KeyStore.formatKey] = .integer(KeyStore.format)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        guard let contents = try? encoder.encode(sections) else { return }
        do throws(StateFileError) {
            try file.replace(with: contents)
        } catch {
            let isFirst = state.withLock { state in
                defer { state.hasWarned = true }
                state.sections = before
                // What could not be written is tried again with the next change.
                state.changes.merge(changes) { newer, _ in newer }
                return !state.hasWarned
            }
            if isFirst { warn("\(error)") }
        }
    }

    private static func value(of encodable: any Encodable) -> JSONValue? {
        guard let octets = try? JSONEncoder().encode(encodable) else { return nil }
        return try? JSONDecoder().decode(JSONValue.self, from: octets)
    }
}
