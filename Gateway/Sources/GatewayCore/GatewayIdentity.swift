import BLE
import ESPHomeProtocol
import Foundation
import Logging

/// The address by which clients recognize a gateway. It must not change when adapters do, so it is kept.
struct GatewayIdentity {
    private let path: String?
    private let logger: Logger

    init(directory: String?, logger: Logger) {
        path = directory.map { $0 + "/gateway-address" }
        self.logger = logger
    }

    /// The address that was kept; nil if there is none.
    func load() -> UInt64? {
        guard let path, let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        return DeviceAddress(text.trimmingCharacters(in: .whitespacesAndNewlines), isRandom: false)?.value
    }

    /// Keeps an address.
    func save(_ address: UInt64) {
        guard let path else { return }
        let text = "\(DeviceAddress(address, isRandom: false))\n"
        do {
            let directory = URL(fileURLWithPath: path).deletingLastPathComponent()
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            try text.write(toFile: path, atomically: true, encoding: .utf8)
        } catch {
            logger.warning("the gateway's address cannot be kept: \(error)", metadata: ["path": "\(path)"])
        }
    }
}
