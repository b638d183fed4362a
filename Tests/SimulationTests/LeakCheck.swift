import BLEHCITransport
import BLEVirtualController
import Testing

@testable import BLE
@testable import BluetoothHost
@testable import BluetoothTesting

/// Checks that nothing of a simulated world remains after its end.
enum LeakCheck {
    /// Runs `body` in a world, closes the world, and records an issue for everything that remains of it.
    ///
    /// - Parameter checksEachStep: whether the state of all hosts is checked whenever all work of one instant is done.
    static func run<Value: Sendable>(
        seed: UInt64,
        limit: Duration = .seconds(600),
        checksEachStep: Bool = true,
        _ body: @escaping @Sendable (World) async throws -> Value
    ) throws -> Value {
        let watch = ReleaseWatch()
        let value = try run(seed, limit, checksEachStep, watch, body)
        if let leak = watch.leak { Issue.record("\(leak)") }
        return value
    }

    private static func run<Value: Sendable>(
        _ seed: UInt64,
        _ limit: Duration,
        _ checksEachStep: Bool,
        _ watch: ReleaseWatch,
        _ body: @escaping @Sendable (World) async throws -> Value
    ) throws -> Value {
        let world = World(seed: seed)
        var contradiction: String?
        let value = try world.run(limit: limit) {
            guard checksEachStep, contradiction == nil else { return }
            for device in world.devices {
                for adapter in device.adapters {
                    guard let found = watch.check(adapter.host) else { continue }
                    contradiction = "\(device.name), at \(world.elapsed): \(found)"
                }
            }
        } _: {
            try await body(world)
        }
        if let contradiction { Issue.record("\(contradiction)") }
        let hosts = world.devices.flatMap { $0.adapters.map(\.host) }
        watch.add(world)
        world.close()
        for leak in leaks(in: world, hosts: hosts) { Issue.record("\(leak)") }
        return value
    }

    /// What a closed world and its closed hosts still hold, one line each.
    static func leaks(in world: World, hosts: [BluetoothHost]) -> [String] {
        var leaks = world.remains
        world.loop.run(limit: .zero) {
            for host in hosts {
                var inspection = host.assumeIsolated { $0.inspect() }
                // Not counted in release builds.
                inspection.tasks = inspection.tasks == 0 ? nil : inspection.tasks
                if inspection != HostInspection() { leaks.append("a host still holds something: \(inspection)") }
            }
            return true
        }
        return leaks
    }
}

/// Weak references to the objects of a world, which must be released after its end, and checks of the hosts' state.
///
/// Used on the thread that runs the world.
final class ReleaseWatch {
    private struct Reference {
        let name: String
        weak var object: AnyObject?
    }

    private var references: [Reference] = []
    private var links: [ObjectIdentifier: [LinkIdentifier: LoopConfined<Reference>]] = [:]
    /// The number of inputs of each host at its last check.
    private var inputCounts: [ObjectIdentifier: Int] = [:]

    /// Watches a world, its devices with their controllers, its adapters and its hosts.
    func add(_ world: World) {
        add("world", world)
        add("loop", world.loop)
        add("air", world.air)
        for device in world.devices {
            add(device.name, device)
            if let controller = device.controller { add("controller of \(device.name)", controller) }
            for adapter in device.adapters {
                add("adapter of \(device.name)", adapter)
                add("access queues of \(device.name)", adapter.peripheral.accessQueues)
                add("host of \(device.name)", adapter.host)
            }
        }
    }

    private func add(_ name: String, _ object: AnyObject) {
        references.append(Reference(name: name, object: object))
    }

    /// Watches the present links of a host and describes an inconsistency in its state; nil if there is none.
    ///
    /// A host without an input since its last check has the same state, so it is not checked again. Most hosts have no
    /// input in most instants of a world, and a check costs more than an input.
    func check(_ host: BluetoothHost) -> String? {
        if let count = host.assumeIsolated({ $0.inputCount }),
            inputCounts.updateValue(count, forKey: ObjectIdentifier(host)) == count
        {
            return nil
        }
        addLinks(of: host)
        return host.assumeIsolated { $0.contradiction() }
    }

    private func addLinks(of host: BluetoothHost) {
        let name = ObjectIdentifier(host)
        let known = links[name, default: [:]]
        let added = host.assumeIsolated { host in
            host.links.values.filter { known[$0.identifier] == nil }.map { link in
                (link.identifier, LoopConfined(Reference(name: "\(link.identifier)", object: link)) {})
            }
        }
        for (identifier, reference) in added { links[name, default: [:]][identifier] = reference }
    }

    /// Describes the objects that are still in memory; nil if there are none.
    var leak: String? {
        let names = references.filter { $0.object != nil }.map(\.name)
        let linkCount = links.values.reduce(0) { $0 + $1.values.count { $0.value.object != nil } }
        if names.isEmpty, linkCount == 0 { return nil }
        return "still in memory after the end: \(names.joined(separator: ", ")), and \(linkCount) links"
    }
}
