import BLE
import Foundation
import Glibc
import HCITransport

/// The hosts of this process: one for each adapter, whatever managers use it.
package enum HostRegistry {
    enum Role: Hashable, Sendable {
        case central
        case peripheral
    }

    private struct Key: Hashable {
        let adapter: AdapterSpecification
        /// Which kind of manager has it, of a virtual adapter.
        let role: Role?
    }

    private static let hosts = Guarded<[Key: SharedHost]>([:])
    /// The hosts of adapters that apps have opened themselves, for as long as a manager uses them.
    private static let adopted = Guarded<[ObjectIdentifier: Weak<SharedHost>]>([:])

    /// The host that an option names.
    ///
    /// - Parameter option: the name of an adapter, or an adapter that is open.
    static func host(on option: Any?, for role: Role, capture: HostCapture = HostCapture()) -> SharedHost {
        if let adapter = option as? Adapter { return host(of: adapter) }
        return host(on: option as? String, for: role, capture: capture)
    }

    /// The one host of an adapter that somebody else has opened.
    private static func host(of adapter: Adapter) -> SharedHost {
        adopted.withLock { adopted in
            adopted = adopted.filter { $0.value.object != nil }
            let key = ObjectIdentifier(adapter)
            if let host = adopted[key]?.object { return host }
            let host = SharedHost(OpenHost(adapter.host, store: adapter.store, isAdopted: true))
            adopted[key] = Weak(host)
            return host
        }
    }

    /// The host on an adapter, open or not.
    ///
    /// - Parameters:
    ///   - adapter: its name; nil for what the environment names, or the first there is.
    ///   - capture: where and how its HCI packets are recorded; what the first manager says counts.
    static func host(on adapter: String?, for role: Role, capture: HostCapture = HostCapture()) -> SharedHost {
        let specification: AdapterSpecification
        do throws(TransportError) {
            specification = try self.specification(adapter)
        } catch {
            let failure = OpeningFailure(error)
            return SharedHost { .failure(failure) }
        }
        let isVirtual = if case .virtual = specification { true } else { false }
        return hosts.withLock { hosts in
            let key = Key(adapter: specification, role: isVirtual ? role : nil)
            if let host = hosts[key] { return host }
            let host = SharedHost { await open(specification, capture) }
            hosts[key] = host
            return host
        }
    }

    /// Returns when each host that a manager uses is open, and each that none uses any more is closed.
    ///
    /// - Returns: whether all could be opened; why not was said on standard error.
    package static func settle() async -> Bool {
        var isOpen = true
        for host in hosts.withLock({ Array($0.values) }) where await !host.settle() { isOpen = false }
        return isOpen
    }

    private static func specification(_ adapter: String?) throws(TransportError) -> AdapterSpecification {
        guard let adapter, !adapter.isEmpty else { return try .default() }
        do throws(AdapterSpecificationError) {
            return try AdapterSpecification(parsing: adapter)
        } catch {
            throw .invalidSpecification(error)
        }
    }

    private static func open(
        _ specification: AdapterSpecification,
        _ capture: HostCapture
    ) async -> Result<OpenHost, OpeningFailure> {
        do throws(BLEError) {
            var configuration = Adapter.Configuration()
            configuration.deviceName = machineName
            configuration.capturePath = capture.path
            configuration.captureMasksKeys = capture.masksKeys
            configuration.warn = ProgrammerError.note
            let adapter = try await Adapter.open(specification, configuration: configuration)
            return .success(OpenHost(adapter.host, store: adapter.store, close: { await adapter.close() }))
        } catch {
            return .failure(OpeningFailure(error))
        }
    }

    /// What the machine is called, as far as a Device Name carries it (Vol 3, Part C, 12.1).
    private static var machineName: String {
        var name = [CChar](repeating: 0, count: 249)
        guard gethostname(&name, name.count - 1) == 0, name[0] != 0 else { return "swift-ble" }
        return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

/// A capture of a host's HCI packets, as a manager's options describe it.
struct HostCapture: Sendable {
    /// The path of the file; nil for no capture.
    var path: String?
    /// Whether keys are replaced by zeros.
    var masksKeys = false
}

/// Why an adapter could not be opened: what managers show, and what the user should do.
struct OpeningFailure: Error, Sendable {
    let state: CBManagerState
    let text: String

    private init(state: CBManagerState, text: String) {
        self.state = state
        self.text = text
    }

    init(_ error: TransportError) {
        let state: CBManagerState =
            switch error {
            case .permissionDenied: .unauthorized
            case .blockedByRFKill, .adapterDown: .poweredOff
            default: .unsupported
            }
        self.init(state: state, text: "\(error)")
    }

    init(_ error: BLEError) {
        if case .adapter(let error) = error {
            self.init(error)
        } else {
            self.init(state: .unsupported, text: "\(error)")
        }
    }
}
