import BLE
import BLEHCITransport
import Foundation
import Glibc

/// The hosts of this process: one for each adapter, regardless of the number of managers.
package enum HostRegistry {
    enum Role: Hashable, Sendable {
        case central
        case peripheral
    }

    private struct Key: Hashable {
        let adapter: AdapterSpecification
        /// The kind of manager that uses the host of a virtual adapter; nil for other adapters.
        let role: Role?
    }

    private static let hosts = Guarded<[Key: SharedHost]>([:])
    /// The hosts of adapters that apps have opened themselves, for as long as a manager uses them.
    private static let adopted = Guarded<[ObjectIdentifier: Weak<SharedHost>]>([:])

    /// Returns the host for the adapter option of a manager.
    ///
    /// - Parameter option: the name of an adapter, or an open adapter.
    static func host(on option: Any?, for role: Role) -> SharedHost {
        if let adapter = option as? Adapter { return host(of: adapter) }
        return host(on: option as? String, for: role)
    }

    /// Returns the host of an adapter that the app has opened.
    private static func host(of adapter: Adapter) -> SharedHost {
        adopted.withLock { adopted in
            adopted = adopted.filter { $0.value.object != nil }
            let key = ObjectIdentifier(identity(of: adapter))
            if let host = adopted[key]?.object { return host }
            let host = SharedHost(OpenHost(adapter.host, store: adapter.store, isAdopted: true))
            adopted[key] = Weak(host)
            return host
        }
    }

    /// Returns the object that identifies an adapter in the registry: the adapter's host, which the entry's object
    /// keeps alive. The adapter itself may be released, and a later adapter may then have its address.
    static func identity(of adapter: Adapter) -> AnyObject { adapter.host }

    /// Returns the host on an adapter, open or not.
    ///
    /// - Parameter adapter: the adapter's name; nil for the adapter that the environment names, otherwise hci0.
    static func host(on adapter: String?, for role: Role) -> SharedHost {
        let environment = unsafe getenv(AdapterSpecification.environmentVariable).map { unsafe String(cString: $0) }
        return host(on: adapter, for: role, environment: environment)
    }

    /// Returns the host on an adapter, open or not.
    ///
    /// - Parameters:
    ///   - adapter: the adapter's name; nil for the adapter that the environment names, otherwise hci0.
    ///   - environment: the value of the environment variable that names the adapter; nil if it is not set.
    static func host(on adapter: String?, for role: Role, environment: String?) -> SharedHost {
        let specification: AdapterSpecification
        do throws(TransportError) {
            // Each attempt to open the host checks whether hci0 exists, because it may be plugged in later.
            specification = try AdapterSpecification.resolve(adapter, environment: environment) { true }
        } catch {
            let failure = OpeningFailure(error)
            return SharedHost { _ in .failure(failure) }
        }
        let isVirtual = if case .virtual = specification { true } else { false }
        return hosts.withLock { hosts in
            let key = Key(adapter: specification, role: isVirtual ? role : nil)
            if let host = hosts[key] { return host }
            let host = SharedHost { options in
                do throws(TransportError) {
                    let specification = try AdapterSpecification.resolve(adapter, environment: environment) {
                        AdapterInventory.read().adapters.contains { $0.index == 0 }
                    }
                    return await open(specification, options)
                } catch {
                    return .failure(OpeningFailure(error))
                }
            }
            hosts[key] = host
            return host
        }
    }

    /// Whether a controller of an open host that a manager uses supports channel sounding.
    static var supportsChannelSounding: Bool {
        let shared = hosts.withLock { Array($0.values) } + adopted.withLock { $0.values.compactMap(\.object) }
        return shared.contains { $0.open?.supportsChannelSounding == true }
    }

    /// Waits until each host that a manager uses is open, and each other host is closed.
    ///
    /// - Returns: whether all could be opened. Failures were reported on standard error.
    package static func settle() async -> Bool {
        var isOpen = true
        for host in hosts.withLock({ Array($0.values) }) where await !host.settle() { isOpen = false }
        return isOpen
    }

    private static func open(
        _ specification: AdapterSpecification,
        _ options: HostOptions
    ) async -> Result<OpenHost, OpeningFailure> {
        do throws(BLEError) {
            var configuration = Adapter.Configuration()
            configuration.deviceName = machineName
            configuration.capturePath = options.capturePath
            configuration.captureMasksKeys = options.captureMasksKeys
            configuration.usesNetworkPrivacy = options.usesNetworkPrivacy
            configuration.warn = ProgrammerError.note
            let adapter = try await Adapter.open(specification, configuration: configuration)
            return .success(OpenHost(adapter.host, store: adapter.store, close: { await adapter.close() }))
        } catch {
            return .failure(OpeningFailure(error))
        }
    }

    /// The machine's name, cut to the maximum length of a Device Name (Vol 3, Part C, 12.1).
    private static var machineName: String {
        var name = [CChar](repeating: 0, count: 249)
        guard unsafe gethostname(&name, name.count - 1) == 0, name[0] != 0 else { return "swift-ble" }
        return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

/// The options of a manager for opening its host. The options of the manager that opens the host apply until the host
/// is closed.
struct HostOptions: Hashable, Sendable {
    /// The path of the file in which HCI packets are recorded; nil for no capture.
    var capturePath: String?
    /// Whether keys are replaced by zeros in the capture.
    var captureMasksKeys = false
    /// Whether a bonded device that has a key for private addresses is heard only under such addresses.
    var usesNetworkPrivacy = false
}

/// The reason why an adapter could not be opened: the state for the managers, and advice for the user.
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
