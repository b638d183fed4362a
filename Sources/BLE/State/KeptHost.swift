import BluetoothHost
import BluetoothTypes
import FoundationEssentials
import KeyStore

/// What a host keeps in a state directory, for who looks at it or changes it while the host does not run.
package struct KeptHost: Sendable {
    package let file: StateFile

    /// The host on the controller with this public address, or with this notation where it has none.
    package init(_ name: String, in directory: String) {
        let name = DeviceAddress(name, isRandom: false).map { "\($0)" } ?? name
        file = StateFile(directory: directory, name: KeyStore.fileName(of: name))
    }

    private init(_ file: StateFile) {
        self.file = file
    }

    /// All hosts that keep something in a directory.
    package static func all(in directory: String) throws(StateFileError) -> [KeptHost] {
        try StateDirectory.files(in: directory).map(KeptHost.init)
    }

    /// The controller's public address, or what the file is called.
    package var name: String {
        let stem = String(file.name.dropLast(".json".count))
        return DeviceAddress(stem.replacing("-", with: ":"), isRandom: false).map { "\($0)" } ?? stem
    }

    /// What is kept now.
    ///
    /// - Parameter warn: takes what is damaged, a line each; it stays as it is.
    package func read(warn: @escaping @Sendable (String) -> Void) throws(StateFileError) -> KeptSecurity {
        let (security, damage) = KeptBonds.read(try KeyStore.inspect(file, warn: warn))
        for text in damage { warn("\(file.path): \(text)") }
        return security
    }

    /// Changes what is kept, which takes that no host uses it.
    ///
    /// A host without an identity is given one with its first bond: bonds without an identity count as damaged.
    package func change(
        warn: @escaping @Sendable (String) -> Void,
        _ body: (inout KeptSecurity) throws -> Void
    ) async throws {
        let store = try KeyStore.edit(file, warn: warn)
        do {
            let bonds = KeptBonds(store, warn: warn)
            var security = await bonds.load(for: nil)
            try body(&security)
            if security.identity == nil, !security.bonds.isEmpty {
                var random = SystemRandomNumberGenerator()
                security.identity = KeptIdentity(random: &random)
            }
            let changed = security
            let isKept = await withCheckedContinuation { continuation in
                bonds.keep(changed) { continuation.resume(returning: $0) }
            }
            guard isKept else { throw KeptHostError.notKept(file.path) }
            await store.close()
        } catch {
            await store.close()
            throw error
        }
    }
}

package enum KeptHostError: Error, Hashable, CustomStringConvertible {
    /// Why was said as a warning.
    case notKept(String)

    package var description: String {
        switch self {
        case .notKept(let path): "\(path) is as it was: it could not be replaced"
        }
    }
}
