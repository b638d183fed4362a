import BLEGATT
import BLEKeyStore
import BLESMP
import BluetoothHost
import BluetoothTypes
import Synchronization

/// A store of a host's bonds and identity in a ``KeyStore``. The file is chosen when the controller has reported its
/// address.
///
/// The databases of peers, as this host's client has discovered them, are in separate cache files, one for each peer.
/// Only a database with a hash is saved. A change of any other database is reported only once, by Service Changed, and
/// the process may end before the removal of the cache is on the disk.
package final class BondFileStore: BondStore {
    private enum Section {
        static let identity = "identity"
        static let bonds = "bonds"
        static let retiredSigningKeys = "retiredSigningKeys"
    }

    private struct State {
        var store: KeyStore?
        /// The caches that were written most recently, by the peers' identity addresses.
        var caches: [DeviceAddress: DatabaseCache] = [:]
    }

    private let state: Mutex<State>
    private let isStrict: Bool
    private let directoryVariable: String?
    private let open: @Sendable (DeviceAddress?) async -> KeyStore
    private let warn: @Sendable (String) -> Void

    /// - Parameters:
    ///   - isStrict: whether a file with damaged records stays as it is until the host changes something.
    ///   - directoryVariable: the variable that names another directory; nil if the app has chosen the directory.
    ///   - open: opens the store of the controller with this public address, or of one that has none.
    ///   - warn: receives warnings for the user, one line each.
    package init(
        isStrict: Bool = false,
        directoryVariable: String? = nil,
        open: @escaping @Sendable (DeviceAddress?) async -> KeyStore,
        warn: @escaping @Sendable (String) -> Void
    ) {
        state = Mutex(State())
        self.isStrict = isStrict
        self.directoryVariable = directoryVariable
        self.open = open
        self.warn = warn
    }

    /// Uses an open store.
    package convenience init(_ store: KeyStore, warn: @escaping @Sendable (String) -> Void) {
        self.init(open: { _ in store }, warn: warn)
        state.withLock { $0.store = store }
    }

    /// The store, once the bonds have been loaded.
    package var store: KeyStore? { state.withLock { $0.store } }

    package var problem: String? {
        store?.problem.map { StateFileError.text($0, namingDirectoryWith: directoryVariable) }
    }

    package nonisolated(nonsending) func load(for publicAddress: DeviceAddress?) async -> HostSecurityState {
        let store: KeyStore
        if let known = self.store { store = known } else { store = await open(publicAddress) }
        var (security, damage) = BondFileStore.read(store)
        await loadCaches(of: &security, in: store)
        state.withLock { $0.store = store }
        guard let first = damage.first else { return security }
        let others = damage.count > 1 ? " and \(damage.count - 1) more" : ""
        store.reportDamage("\(store.path ?? "the state"): damaged parts are ignored (\(first)\(others))")
        // Otherwise each opening would find the damage again.
        if store.isPersistent, !isStrict { save(security) }
        return security
    }

    /// Adds the caches of the bonds' peers. An older version saved them with the bonds. Caches without a hash are not
    /// used. Older versions saved these as well. They are removed with the next change.
    private nonisolated(nonsending) func loadCaches(of security: inout HostSecurityState, in store: KeyStore) async {
        let names = security.bonds.map { BondFileStore.cacheName(of: $0.bond.identity) }
        let entries = await store.caches(names, as: DatabaseCacheEntry.self)
        var caches: [DeviceAddress: DatabaseCache] = [:]
        for (index, name) in names.enumerated() {
            if let cache = entries[name]?.cache {
                security.bonds[index].clientCache = cache
                caches[security.bonds[index].bond.identity] = cache
            }
            if security.bonds[index].clientCache?.hash == nil { security.bonds[index].clientCache = nil }
        }
        state.withLock { [caches] in $0.caches = caches }
    }

    private static func cacheName(of identity: DeviceAddress) -> String {
        "\(identity)-\(identity.isRandom ? "random" : "public")"
    }

    /// Returns the contents of a store, without the caches, and a description of each damaged part.
    package static func read(_ store: KeyStore) -> (security: HostSecurityState, damage: [String]) {
        var damage: [String] = []
        var security = HostSecurityState()
        let identity = store.section(Section.identity, as: Attempt<IdentityEntry>.self)
        if let identity {
            switch identity.result {
            case .success(let entry): security.identity = entry.identity
            case .failure(let error): damage.append("\(Section.identity)\(describe(error))")
            }
        }
        var known: Set<DeviceAddress> = []
        let entries = store.section(Section.bonds, as: [Attempt<BondEntry>].self) ?? []
        for (index, entry) in entries.enumerated() {
            switch entry.result {
            case .success(let entry) where known.insert(entry.record.bond.identity).inserted:
                security.bonds.append(entry.record)
            case .success(let entry):
                damage.append("\(Section.bonds)[\(index)]: there is another bond with \(entry.record.bond.identity)")
            case .failure(let error): damage.append("\(Section.bonds)\(describe(error))")
            }
        }
        let keys = store.section(Section.retiredSigningKeys, as: [Attempt<SigningKeyEntry>].self) ?? []
        for entry in keys {
            switch entry.result {
            case .success(let entry): security.retiredSigningKeys.add(entry.key)
            case .failure(let error): damage.append("\(Section.retiredSigningKeys)\(describe(error))")
            }
        }
        // A host saves its identity before its first bond, and the bonds' peers know the host by that identity.
        if identity == nil, !entries.isEmpty {
            damage.append("\(Section.identity): this is missing, and there are bonds")
        }
        return (security, damage)
    }

    package func save(_ security: HostSecurityState, completion: (@Sendable (Bool) -> Void)? = nil) {
        guard let store else {
            completion?(false)
            return
        }
        store.save(sections(of: security, in: store), caches: changedCaches(of: security), completion: completion)
    }

    package func saveSoon(_ security: HostSecurityState) {
        guard let store else { return }
        store.saveSoon(sections(of: security, in: store), caches: changedCaches(of: security))
    }

    private func sections(of security: HostSecurityState, in store: KeyStore) -> [String: KeyStore.Source] {
        var sections: [String: KeyStore.Source] = [
            Section.bonds: { security.bonds.map { BondEntry(record: $0) } }
        ]
        if let identity = security.identity {
            sections[Section.identity] = { IdentityEntry(identity: identity) }
        }
        let keys = security.retiredSigningKeys.keys
        if !keys.isEmpty || store.hasSection(Section.retiredSigningKeys) {
            sections[Section.retiredSigningKeys] = { keys.map(SigningKeyEntry.init) }
        }
        return sections
    }

    /// Returns the caches that differ from those written most recently.
    private func changedCaches(of security: HostSecurityState) -> [String: KeyStore.Source?] {
        state.withLock { state in
            var changes: [String: KeyStore.Source?] = [:]
            var removed = state.caches
            for record in security.bonds {
                let identity = record.bond.identity
                guard let cache = record.clientCache, cache.hash != nil else { continue }
                // Arrays with the same storage are equal without a comparison of their elements.
                guard removed.removeValue(forKey: identity) != cache else { continue }
                state.caches[identity] = cache
                changes[BondFileStore.cacheName(of: identity)] = .some { DatabaseCacheEntry(cache) }
            }
            for identity in removed.keys {
                state.caches[identity] = nil
                changes[BondFileStore.cacheName(of: identity)] = .some(nil)
            }
            return changes
        }
    }

    /// Waits until all changes are in the file, and releases the file for others.
    package func close() async {
        await store?.close()
    }

    /// Returns the place and the reason of a decoding error.
    static func describe(_ error: any Error) -> String {
        guard let error = error as? DecodingError else { return ": \(error)" }
        let (context, text): (DecodingError.Context, String) =
            switch error {
            case .keyNotFound(let key, let context): (context, "\(key.stringValue) is missing")
            case .typeMismatch(_, let context): (context, "this is of another kind than it should be")
            case .valueNotFound(_, let context): (context, "a value is missing")
            case .dataCorrupted(let context): (context, context.debugDescription)
            @unknown default: (DecodingError.Context(codingPath: [], debugDescription: ""), "\(error)")
            }
        let path = context.codingPath.map { key in key.intValue.map { "[\($0)]" } ?? ".\(key.stringValue)" }
        return "\(path.joined()): \(text)"
    }
}

/// A value whose damage does not affect the values beside it.
struct Attempt<Value: Decodable>: Decodable {
    let result: Result<Value, any Error>

    init(from decoder: any Decoder) throws {
        result = Result { try Value(from: decoder) }
    }
}
