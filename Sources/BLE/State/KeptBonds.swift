import BluetoothHost
import BluetoothTypes
import KeyStore
import SMP
import Synchronization

/// The bonds of a host and its identity in a ``KeyStore``, whose file is known when the controller has told its address.
package final class KeptBonds: BondStore {
    private enum Section {
        static let identity = "identity"
        static let bonds = "bonds"
    }

    private let opened: Mutex<KeyStore?>
    private let open: @Sendable (DeviceAddress?) async -> KeyStore
    private let warn: @Sendable (String) -> Void

    /// - Parameters:
    ///   - open: opens the store of the controller with this public address, or of one that has none.
    ///   - warn: takes what the user should know, a line each.
    package init(
        open: @escaping @Sendable (DeviceAddress?) async -> KeyStore,
        warn: @escaping @Sendable (String) -> Void
    ) {
        opened = Mutex(nil)
        self.open = open
        self.warn = warn
    }

    /// Bonds in a store that is open.
    package convenience init(_ store: KeyStore, warn: @escaping @Sendable (String) -> Void) {
        self.init(open: { _ in store }, warn: warn)
        opened.withLock { $0 = store }
    }

    /// The store, once the bonds have been loaded.
    package var store: KeyStore? { opened.withLock { $0 } }

    package nonisolated(nonsending) func load(for publicAddress: DeviceAddress?) async -> KeptSecurity {
        let store: KeyStore
        if let known = self.store { store = known } else { store = await open(publicAddress) }
        opened.withLock { $0 = store }
        let (security, damage) = KeptBonds.read(store)
        guard let first = damage.first else { return security }
        let others = damage.count > 1 ? " and \(damage.count - 1) more" : ""
        store.reportDamage("\(store.path ?? "the state"): what is damaged is left out (\(first)\(others))")
        // Otherwise each opening would find the damage again.
        if store.isKept { keep(security) }
        return security
    }

    /// What a store holds, and what in it is damaged, each in some words.
    package static func read(_ store: KeyStore) -> (security: KeptSecurity, damage: [String]) {
        var damage: [String] = []
        var security = KeptSecurity()
        if let identity = store.section(Section.identity, as: Attempt<IdentityEntry>.self) {
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
        return (security, damage)
    }

    package func keep(_ security: KeptSecurity, whenKept: (@Sendable (Bool) -> Void)? = nil) {
        guard let store else {
            whenKept?(false)
            return
        }
        var sections: [String: KeyStore.Source] = [
            Section.bonds: { security.bonds.map { BondEntry(record: $0) } }
        ]
        if let identity = security.identity {
            sections[Section.identity] = { IdentityEntry(identity: identity) }
        }
        store.keep(sections, whenKept: whenKept)
    }

    /// Waits until all is in the file, and lets others have it.
    package func close() async {
        await store?.close()
    }

    /// Where something could not be decoded, and why.
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

/// A value that may be damaged without damage to those beside it.
struct Attempt<Value: Decodable>: Decodable {
    let result: Result<Value, any Error>

    init(from decoder: any Decoder) throws {
        result = Result { try Value(from: decoder) }
    }
}
