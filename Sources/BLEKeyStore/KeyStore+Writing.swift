import BLEJSONText
import Dispatch
import FoundationEssentials

// Writing changes, on the store's queue.
extension KeyStore {
    /// The largest section that is written, in bytes of JSON. A larger one is left out, so that the file stays below
    /// the limit for reading.
    static let sectionSizeLimit = 4 << 20

    /// Writes all changes. Called on the queue.
    func write() {
        let (before, changes, caches, waiting, canWrite, isUncertain) = state.withLock { state in
            defer {
                state.isWriteScheduled = false
                state.waiting = []
                if state.lock != nil {
                    state.changesInWrite = state.changes
                    state.changes = [:]
                }
                // A store that may not write would collect one for each peer.
                state.cacheChanges = [:]
            }
            return (
                state.document, state.changes, state.cacheChanges, state.waiting, state.lock != nil, state.isUncertain
            )
        }
        let isSaved = canWrite && write(changes, onto: before, isUncertain: isUncertain, caches)
        state.withLock { $0.changesInWrite = [:] }
        for completion in waiting { completion(isSaved) }
    }

    /// - Returns: whether the file holds the changes now.
    private func write(
        _ changes: [String: Source],
        onto before: StateDocument,
        isUncertain: Bool,
        _ caches: [String: Source?]
    ) -> Bool {
        guard let file else { return false }
        var document = before
        var isComplete = true
        for (name, source) in changes {
            if let value = value(of: source(), for: name) {
                document.sections[name] = value
            } else {
                isComplete = false
            }
        }
        // A cache of an earlier bond must not be used for a new bond. If it cannot be removed, the file with the new
        // bond says that the cache is stale.
        let stale = before.staleCaches
        let isReplaced = document != before || isUncertain
        let errors = removeCaches(isReplaced ? stale.union(caches.keys) : stale, isRepeated: !stale.isEmpty)
        document.staleCaches = Set(errors.keys)
        guard document != before || isUncertain else {
            writeCaches(caches)
            return isComplete
        }
        do throws(StateFileError) {
            guard let contents = document.encoded else { return false }
            try file.replace(with: contents)
            state.withLock { state in
                state.document = document
                state.isUncertain = false
                state.hasWarned = false
                state.writeCount += 1
            }
            if let (_, error) = errors.filter({ !stale.contains($0.key) }).min(by: { $0.key < $1.key }) {
                warn("\(error): this cache is not used until it is removed")
            }
            writeCaches(caches)
            return isComplete
        } catch {
            let isFirst = state.withLock { state in
                defer { state.hasWarned = true }
                state.isUncertain = true
                // Changes that could not be written are written with the next change.
                state.changes.merge(changes) { newer, _ in newer }
                state.cacheChanges.merge(caches) { newer, _ in newer }
                return !state.hasWarned
            }
            if isFirst { warn("\(error): changes are not saved until this succeeds") }
            return false
        }
    }

    private func value(of encodable: any Encodable, for section: String) -> JSON? {
        guard let octets = try? JSONEncoder().encode(encodable) else { return nil }
        guard octets.count <= KeyStore.sectionSizeLimit else {
            warn(
                "the section \(section) of \(path ?? "the state") is larger than \(KeyStore.sectionSizeLimit >> 20) MB and "
                    + "is not written"
            )
            return nil
        }
        return try? JSONDecoder().decode(JSON.self, from: octets)
    }
}
