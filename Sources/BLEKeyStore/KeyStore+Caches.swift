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

    /// Reads the caches with these names. A cache is left out if it is missing, cannot be decoded, is accessible to
    /// other users, or exceeds the total size limit. If this process may change the files, all files of other caches
    /// and of those left out are removed.
    package func caches<Value: Decodable & Sendable>(_ names: [String], as type: Value.Type) async -> [String: Value] {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: self.readCaches(names, as: type)) }
        }
    }

    private func readCaches<Value: Decodable>(_ names: [String], as type: Value.Type) -> [String: Value] {
        guard let cacheDirectory, let found = try? StateDirectory.files(in: cacheDirectory), !found.isEmpty else {
            return [:]
        }
        var values: [String: Value] = [:]
        var used: Set<String> = []
        var total = 0
        for name in names {
            guard let file = cacheFile(name), let contents = try? file.read(), contents.laxMode == nil,
                total + contents.data.count <= KeyStore.totalSizeLimit, StateDocument.isShallow(contents.data),
                let value = try? JSONDecoder().decode(type, from: contents.data)
            else { continue }
            total += contents.data.count
            values[name] = value
            used.insert(file.name)
        }
        if isKept {
            for file in found where !used.contains(file.name) { unsafe unlink(file.path) }
        }
        return values
    }

    /// Removes caches, and makes the removal durable before the next write.
    func removeCaches(_ names: some Sequence<String>) throws(StateFileError) {
        var isAnyRemoved = false
        for name in names {
            guard let file = cacheFile(name) else { continue }
            if unsafe unlink(file.path) == 0 {
                isAnyRemoved = true
            } else if errno != ENOENT, errno != ENOTDIR {
                throw .failed("remove", file.path)
            }
        }
        guard isAnyRemoved, let cacheDirectory else { return }
        try StateFile.synchronize(directory: cacheDirectory)
    }

    /// Replaces or removes caches. One that cannot be written is missing, which is no error.
    func writeCaches(_ changes: [String: Source?]) {
        for (name, source) in changes {
            guard let file = cacheFile(name) else { continue }
            guard let source, let contents = try? JSONEncoder().encode(source()),
                (try? file.replace(with: contents, isDurable: false)) != nil
            else {
                unsafe unlink(file.path)
                continue
            }
        }
    }
}
