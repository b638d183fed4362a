import BLE
import Foundation
import Logging

/// The address by which clients recognize a gateway. It must not change when adapters do, and no other gateway may have
/// it, so it is random and kept.
struct GatewayIdentity {
    private let path: String?
    private let logger: Logger

    /// - Parameter directory: the directory of the file; nil to keep nothing.
    init(directory: String?, logger: Logger) {
        path = directory.map { $0 + "/gateway-address" }
        self.logger = logger
    }

    /// Returns the address that was kept, or else a random one, which is kept from now on.
    ///
    /// - Returns: nil if no address can be kept.
    func loadOrCreate() -> UInt64? {
        guard let path else { return nil }
        do {
            if let address = try load(path) { return address }
            let address = Self.localAddress(UInt64.random(in: 0 ... .max))
            try save(address, path)
            return address
        } catch {
            logger.warning("the gateway's address cannot be kept: \(error)", metadata: ["path": "\(path)"])
            return nil
        }
    }

    /// Returns a locally administered unicast address (IEEE Std 802), which no vendor assigns to a device.
    ///
    /// - Parameter bits: the other bits of the address.
    static func localAddress(_ bits: UInt64) -> UInt64 { bits & 0xFCFF_FFFF_FFFF | 0x0200_0000_0000 }

    /// Returns the address in a file; nil if there is no file, or if it has no address.
    private func load(_ path: String) throws -> UInt64? {
        if access(path, F_OK) != 0, errno == ENOENT { return nil }
        let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self)
        return DeviceAddress(text.trimmingCharacters(in: .whitespacesAndNewlines), isRandom: false)?.value
    }

    /// Writes an address so that it survives a loss of power.
    private func save(_ address: UInt64, _ path: String) throws {
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let temporary = URL(fileURLWithPath: path + ".new")
        try Data("\(DeviceAddress(address, isRandom: false))\n".utf8).write(to: temporary)
        try synchronize(temporary)
        guard rename(temporary.path, path) == 0 else { throw CocoaError(.fileWriteUnknown) }
        // Not all file systems can do this.
        try? synchronize(directory)
    }

    /// Waits until a file, or the names in a directory, are on the disk.
    private func synchronize(_ url: URL) throws {
        let descriptor = open(url.path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw CocoaError(.fileWriteUnknown) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw CocoaError(.fileWriteUnknown) }
    }
}
