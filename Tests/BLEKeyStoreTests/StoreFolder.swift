import Foundation

@testable import BLEKeyStore

/// The content of a section.
struct Peers: Codable, Equatable {
    var names: [String]
}

/// A directory for stores, which is removed with its last reference.
final class StoreFolder: Sendable {
    let path = FileManager.default.temporaryDirectory.path + "/key-store-\(UUID().uuidString)"

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Opens the store of the adapter 00:11:22. Changes of ``KeyStore/change(_:_:)`` wait until the store is closed,
    /// flushed or saved.
    func open(warn: @escaping @Sendable (String) -> Void) async -> KeyStore {
        await KeyStore.open(adapter: "00:11:22", in: path, writeDelay: .seconds(3600), warn: warn)
    }
}
