import BLEKeyStore
import BluetoothHost
import BluetoothTypes
import FoundationEssentials

/// A store of the saved state of one host in a state directory. Tools read and change it while the host does not run.
package struct HostStateStore: Sendable {
    package let file: StateFile

    /// Creates the store of the host on the controller with this public address, or with this notation if it has none.
    package init(_ name: String, in directory: String) {
        let name = DeviceAddress(name, isRandom: false).map { "\($0)" } ?? name
        file = StateFile(directory: directory, name: KeyStore.fileName(of: name))
    }

    private init(_ file: StateFile) {
        self.file = file
    }

    /// Returns the stores of all hosts that have saved state in a directory.
    package static func all(in directory: String) throws(StateFileError) -> [HostStateStore] {
        try StateDirectory.files(in: directory).map(HostStateStore.init)
    }

    /// The controller's public address, or the name of the file.
    package var name: String {
        let stem = String(file.name.dropLast(".json".count))
        return DeviceAddress(stem.replacing("-", with: ":"), isRandom: false).map { "\($0)" } ?? stem
    }

    /// Returns the saved security state.
    ///
    /// - Parameter warn: receives a line for each damaged record; damaged records stay as they are.
    package func read(warn: @escaping @Sendable (String) -> Void) throws(StateFileError) -> HostSecurityState {
        let (security, damage) = BondFileStore.read(try KeyStore.inspect(file, warn: warn))
        for text in damage { warn("\(file.path): \(text)") }
        return security
    }

    /// Changes the saved security state. No host may be using it.
    ///
    /// A host without an identity gets one with its first bond, because bonds without an identity count as damaged.
    package func change(
        warn: @escaping @Sendable (String) -> Void,
        _ body: (inout HostSecurityState) throws -> Void
    ) async throws {
        let store = try KeyStore.edit(file, warn: warn)
        do {
            let bonds = BondFileStore(store, warn: warn)
            let earlier = await bonds.load(for: nil)
            var security = earlier
            try body(&security)
            security.keepPeerCounters(of: earlier)
            if security.identity == nil, !security.bonds.isEmpty {
                var random = SystemRandomNumberGenerator()
                security.identity = HostIdentity(random: &random)
            }
            let changed = security
            let isSaved = await withCheckedContinuation { continuation in
                bonds.save(changed) { continuation.resume(returning: $0) }
            }
            guard isSaved else { throw HostStateError.notSaved(file.path) }
            await store.close()
        } catch {
            await store.close()
            throw error
        }
    }
}

/// An error of a change of a host's saved state.
package enum HostStateError: Error, Hashable, CustomStringConvertible {
    /// The file with this path could not be replaced. A warning has given the reason.
    case notSaved(String)

    package var description: String {
        switch self {
        case .notSaved(let path): "\(path) is as it was: it could not be replaced"
        }
    }
}
