import BLE
import BLEJSONText
import BLEKeyStore
import BLESMP
import BluetoothHost
import BluetoothTypes
import Dispatch
import Foundation
import Synchronization

/// A state file with any contents, which is read, opened as by a host, changed, and read again.
///
/// - A file that cannot be used is reported by an error, and stays as it is or has a copy.
/// - Reading changes nothing.
/// - A written state is read again without damage, and is written in the same way again.
/// - Sections of other versions stay.
struct StateFuzzing {
    private static let name = "fuzz"
    private static let fileName = "fuzz.json"
    private static let copyName = "fuzz.json.damaged-1"

    let folder: StateFolder
    let original: [UInt8]
    let caches: [[UInt8]]

    private var file: StateFile { StateFile(directory: folder.path, name: StateFuzzing.fileName) }

    /// The contents of a state file as the tools read it.
    private struct Reading {
        var security = HostSecurityState()
        var isDamaged = false
        var error: StateFileError?
    }

    func run() {
        guard (try? file.replace(with: Data(original), isDurable: false)) != nil else { fatalError("no state folder") }
        let before = read()
        requireUnchanged("reading")
        require(editingError == before.error, "reading and editing have different errors")
        requireUnchanged("an edit without a change")
        writeCaches(of: before.security)

        let changed = change(before)
        guard let changed else { return requireUnchanged("a host that cannot use it") }
        let after = read()
        require(after.error == nil && !after.isDamaged, "a state that was written is damaged")
        require(after.security == withoutCaches(changed), "another state than the one that was written")
        if before.error == nil {
            let kept = sections(folder.contents(of: StateFuzzing.fileName))
            require(kept == sections(original), "other sections have changed")
        }
        readAgain(changed)
        let expected = before.error != nil || before.isDamaged ? [StateFuzzing.copyName] : []
        let unexpected = Set(folder.names).subtracting(
            [StateFuzzing.fileName, "fuzz.json.lock", "fuzz.caches"] + expected
        )
        require(unexpected.isEmpty, "files \(unexpected.sorted())")
    }

    // MARK: Reading

    private func read() -> Reading {
        do throws(StateFileError) {
            let store = try KeyStore.inspect(file) { _ in }
            let (security, damage) = BondFileStore.read(store)
            return Reading(security: security, isDamaged: !damage.isEmpty || store.problem != nil)
        } catch {
            return Reading(error: error)
        }
    }

    /// The error of an attempt to edit the file.
    private var editingError: StateFileError? {
        do throws(StateFileError) {
            _ = try KeyStore.edit(file) { _ in }
            return nil
        } catch {
            return error
        }
    }

    private func requireUnchanged(_ cause: String) {
        require(folder.contents(of: StateFuzzing.fileName) == original, "\(cause) has changed the file")
    }

    /// The sections that this version does not know.
    private func sections(_ contents: [UInt8]?) -> [String: JSON] {
        let known: Set = ["format", "identity", "bonds", "retiredSigningKeys"]
        let document = try? JSONDecoder().decode([String: JSON].self, from: Data(contents ?? []))
        return (document ?? [:]).filter { !known.contains($0.key) }
    }

    private func withoutCaches(_ security: HostSecurityState) -> HostSecurityState {
        var security = security
        for index in security.bonds.indices { security.bonds[index].clientCache = nil }
        return security
    }

    private func writeCaches(of security: HostSecurityState) {
        for (record, octets) in zip(security.bonds, caches) {
            let identity = record.bond.identity
            let name = KeyStore.fileName(of: "\(identity)-\(identity.isRandom ? "random" : "public")")
            let cache = StateFile(directory: folder.path + "/fuzz.caches", name: name)
            guard (try? cache.replace(with: Data(octets), isDurable: false)) != nil else {
                fatalError("no cache folder")
            }
        }
    }

    // MARK: A host

    /// Opens the file as a host does, adds a bond and closes it.
    ///
    /// - Returns: the state that was written; nil if the file may not be written.
    private func change(_ before: Reading) -> HostSecurityState? {
        let (store, bonds, loaded) = open()
        var security = loaded
        switch before.error {
        case .damaged?:
            require(security == HostSecurityState(), "a damaged file has contents")
            requireUnchanged("opening")
        case .laterFormat?: require(!store.isPersistent, "a file of a later format may be changed")
        case nil:
            let isSame = withoutCaches(security) == withoutCaches(before.security)
            require(isSame, "a host loads another state than the tools")
        case let error?: fatalError("\(error)")
        }
        if before.error != nil || before.isDamaged {
            require(store.problem != nil, "damage is not reported")
            if store.isPersistent {
                require(folder.contents(of: StateFuzzing.copyName) == original, "there is no copy of a damaged file")
            }
        }
        let identity = DeviceAddress(0xF000_0000_0001, isRandom: true)
        security.bonds.removeAll { $0.bond.identity == identity }
        var bond = Bond(identity: identity)
        bond.identityResolvingKey = 7
        bond.ownSigningKey = SigningKey(value: 8, isAuthenticated: true, nextCounter: 9)
        security.bonds.append(BondRecord(bond: bond))
        security.identity = security.identity ?? HostIdentity(staticAddress: identity, resolvingKey: 1)
        let isSaved = wait { [security] in
            await withCheckedContinuation { continuation in
                bonds.save(security) { continuation.resume(returning: $0) }
            }
        }
        wait { await store.close() }
        require(isSaved == (before.error == nil || store.problem?.contains("damaged") == true), "a change is not saved")
        return isSaved ? security : nil
    }

    /// Opens the written file, and writes it again without a change.
    private func readAgain(_ written: HostSecurityState) {
        let contents = folder.contents(of: StateFuzzing.fileName)
        let (store, bonds, loaded) = open()
        require(store.problem == nil, "a state that was written has a problem: \(store.problem ?? "")")
        require(loaded == written, "another state or other caches than those that were written")
        bonds.save(loaded)
        wait { await store.close() }
        require(folder.contents(of: StateFuzzing.fileName) == contents, "the same state is written otherwise")
    }

    private func open() -> (store: KeyStore, bonds: BondFileStore, security: HostSecurityState) {
        wait { [folder] in
            let store = await KeyStore.open(adapter: StateFuzzing.name, in: folder.path) { _ in }
            let bonds = BondFileStore(store) { _ in }
            let security = await bonds.load(for: nil)
            await store.flush()
            return (store, bonds, security)
        }
    }
}

/// Waits in this thread for asynchronous work, which runs on a thread of its own.
private func wait<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) -> Value {
    let loop = DispatchEventLoop(label: "state-fuzzing")
    let result = Mutex<Value?>(nil)
    let isDone = DispatchSemaphore(value: 0)
    Task(executorPreference: loop.taskExecutor) {
        let value = await work()
        result.withLock { $0 = value }
        isDone.signal()
    }
    isDone.wait()
    guard let value = result.withLock({ $0 }) else { fatalError("work without a result") }
    return value
}
