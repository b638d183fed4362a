import Dispatch
import FoundationEssentials
import Glibc

// Caches of values that can be obtained again, in a directory beside the state file, each in its own file. File sizes
// are bounded; a damaged or too large file is dropped without affecting the others.
extension KeyStore {
    /// The largest cache that is read or written, in bytes.
    package static let cacheSizeLimit = 1 << 20
    /// The most bytes of caches that are read when a store is opened.
    private static let totalSizeLimit = 32 << 20

    /// The directory of the caches; nil for a store in memory.
    package var cacheDirectory: String? {
        file.map { "\($0.directory)/\($0.name.hasSuffix(".json") ? String($0.name.dropLast(5)) : $0.name).caches" }
    }

    private func cacheFile(_ name: String) -> StateFile? {
        cacheDirectory.map {
            StateFile(directory: $0, name: KeyStore.fileName(of: name), sizeLimit: KeyStore.cacheSizeLimit)
        }
    }

    /// Reads the caches with these names. A cache is left out if it is missing or stale, cannot be decoded, is
    /// accessible to other users, or exceeds the total size limit.
    ///
    /// If this process may change the files, it removes all files of other caches and of those left out, and the
    /// unfinished files of processes that have ended.
    package func caches<Value: Decodable & Sendable>(_ names: [String], as type: Value.Type) async -> [String: Value] {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: self.readCaches(names, as: type)) }
        }
    }

    private func readCaches<Value: Decodable>(_ names: [String], as type: Value.Type) -> [String: Value] {
        guard let cacheDirectory, let entries = try? StateDirectory.names(in: cacheDirectory), !entries.isEmpty else {
            return [:]
        }
        if isPersistent { StateFile.removeLeftovers(among: entries, in: cacheDirectory) { $0.hasSuffix(".json") } }
        var values: [String: Value] = [:]
        var used: Set<String> = []
        var total = 0
        let stale = state.withLock { $0.document.staleCaches }
        for name in names where !stale.contains(name) {
            guard let file = cacheFile(name), let contents = try? file.read(), contents.laxMode == nil,
                total + contents.data.count <= KeyStore.totalSizeLimit, StateDocument.isShallow(contents.data),
                let value = try? JSONDecoder().decode(type, from: contents.data)
            else { continue }
            total += contents.data.count
            values[name] = value
            used.insert(file.name)
        }
        if isPersistent {
            for entry in entries where entry.hasSuffix(".json") && !used.contains(entry) {
                unsafe unlink("\(cacheDirectory)/\(entry)")
            }
        }
        return values
    }

    /// Removes caches.
    ///
    /// - Parameters:
    ///   - names: the caches.
    ///   - isRepeated: whether an earlier process may have removed some of them, without effect after a loss of power.
    /// - Returns: the errors for the caches that may still exist after a loss of power.
    func removeCaches(_ names: Set<String>, isRepeated: Bool) -> [String: StateFileError] {
        var errors: [String: StateFileError] = [:]
        var isUncertain = isRepeated || state.withLock { $0.isCacheRemovalUncertain }
        for name in names {
            guard let file = cacheFile(name) else { continue }
            if unsafe unlink(file.path) == 0 {
                isUncertain = true
            } else if errno != ENOENT, errno != ENOTDIR {
                errors[name] = .failed("remove", file.path)
            }
        }
        guard isUncertain, let cacheDirectory else { return errors }
        do throws(StateFileError) {
            try StateFile.synchronize(directory: cacheDirectory)
            isUncertain = false
        } catch .system(_, _, ENOENT) {
            // Without the directory, there are no caches.
            isUncertain = false
        } catch {
            for name in names { errors[name] = errors[name] ?? error }
        }
        state.withLock { [isUncertain] in $0.isCacheRemovalUncertain = isUncertain }
        return errors
    }

    /// Replaces or removes caches. One that cannot be written is missing, which is no error. A stale cache is not
    /// written, because it is not read either: the change waits until the stale file has been removed.
    func writeCaches(_ changes: [String: Source?]) {
        for (name, source) in changes {
            let isStale = state.withLock { state in
                guard state.document.staleCaches.contains(name) else { return false }
                if state.cacheChanges[name] == nil { state.cacheChanges[name] = .some(source) }
                return true
            }
            guard !isStale, let file = cacheFile(name) else { continue }
            guard let source, let contents = try? JSONEncoder().encode(source()),
                (try? file.replace(with: contents, isDurable: false)) != nil
            else {
                unsafe unlink(file.path)
                continue
            }
        }
    }
}
