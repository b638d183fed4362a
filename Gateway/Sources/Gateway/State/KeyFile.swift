import ESPHomeProtocol
import Foundation

/// The file with the encryption key: base64 of 32 bytes, readable by its owner only.
struct KeyFile {
    let path: String

    /// Reads the key, or makes one if the file does not exist.
    ///
    /// - Returns: the key, and whether it was made now.
    /// - Throws: ``StateError`` if the file cannot be read or written, if other users can read or change it, or if it
    ///   holds no key.
    func readOrCreate() throws(StateError) -> (key: NoiseKey, isNew: Bool) {
        if let key = try read() { return (key, false) }
        return try create(NoiseKey.random())
    }

    /// Reads the key; nil if the file does not exist.
    func read() throws(StateError) -> NoiseKey? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw .failed("the key cannot be read", path, errno)
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .failed("the key cannot be read", path, errno) }
        if let error = StateError.foreign("the key", path, owner: status.st_uid) { throw error }
        guard status.st_mode & 0o077 == 0 else {
            throw StateError(path: path, failure: "other users can read the key", advice: "run `chmod 600 \(path)`")
        }
        // One byte more than the longest valid file shows that a file is too long.
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = Foundation.read(descriptor, &bytes, bytes.count)
        guard count >= 0 else { throw .failed("the key cannot be read", path, errno) }
        let text = String(decoding: bytes.prefix(count), as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard let key = NoiseKey(base64: text) else {
            throw StateError(
                path: path,
                failure: "the file holds no key: it must have base64 of 32 bytes",
                advice: "remove the file, and `ble-gateway key` makes a new key"
            )
        }
        return key
    }

    /// Writes a key to a temporary file and gives it its name, unless another process has done so before.
    private func create(_ key: NoiseKey) throws(StateError) -> (key: NoiseKey, isNew: Bool) {
        let temporary = "\(path).\(getpid())"
        unlink(temporary)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .failed("the key cannot be written", path, errno) }
        defer { unlink(temporary) }
        let text = Array("\(key.base64)\n".utf8)
        let isWritten = write(descriptor, text, text.count) == text.count && fsync(descriptor) == 0
        let number = errno
        guard close(descriptor) == 0, isWritten else { throw .failed("the key cannot be written", path, number) }
        guard link(temporary, path) == 0 else {
            guard errno == EEXIST, let existing = try read() else {
                throw .failed("the key cannot be written", path, errno)
            }
            return (existing, false)
        }
        let directory = open((path as NSString).deletingLastPathComponent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if directory >= 0 {
            fsync(directory)
            close(directory)
        }
        return (key, true)
    }
}
