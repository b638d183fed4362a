import BLE
import BluetoothHost
import BluetoothTesting
import CoreBluetooth

/// Fuzzes managers of Core Bluetooth's API.
///
/// Three apps have both kinds of managers. They call these, their peripherals and their services in any order, from
/// outside and within delegates, while links and controllers are lost.
///
/// Two apps share the first of two devices. The world and the apps' queue run by turns, so that each run of an input is
/// the same.
enum ManagerFuzzing {
    /// - Parameter script: the choice of each packet selects an app and an action, and its bytes are the parameters.
    ///   The delay, in units of 20 ms, passes after it.
    static func run(_ script: Script) {
        let world = World(seed: 1)
        defer { world.close() }
        do {
            try run(script, in: world)
        } catch {
            stopFuzzing(error)
        }
    }

    private static func run(_ script: Script, in world: World) throws {
        let devices = [world.device("first"), world.device("second")]
        let adapters = try world.run {
            [try await devices[0].openAdapter(configure), try await devices[1].openAdapter(configure)]
        }
        let queue = SteppedQueue()
        var released = ReleasedObjects()
        // The apps are released before the checks.
        let calls = runApps(script, in: world, devices, adapters, queue, &released)
        try world.run(limit: .seconds(600)) { [calls] in await calls.end() }
        for _ in 0..<3 {
            world.advance(by: .seconds(60))
            queue.deliver()
        }
        released.requireNone()
        queue.end()
        try world.run {
            for adapter in adapters {
                let held = await adapter.host.inspect()
                require(held.links == 0, "\(held.links) links without a manager")
                require(held.scans + held.advertisements + held.connectionAttempts == 0, "managers have left \(held)")
                // A packet of the script may be a refusal.
                let areSetsRemoved = held.unremovedAdvertisingSets == 0 || script.packets.contains(where: isInjected)
                require(areSetsRemoved, "managers have left advertising sets: \(held)")
                require(held.calls == 0 && held.subscribers == 0, "managers have left calls or subscribers: \(held)")
                let observers = held.hostObservers + held.serverObservers + held.securityObservers
                require(observers + held.channelObservers == 0, "managers have left observers: \(held)")
                await closeCompletely(adapter)
            }
        }
    }

    private static func configure(_ configuration: inout Adapter.Configuration) {
        configuration.pairingDelegate = Consent()
        configuration.scanSilenceTimeout = nil
    }

    /// Performs the actions of the script.
    ///
    /// - Returns: the asynchronous calls of the apps.
    private static func runApps(
        _ script: Script,
        in world: World,
        _ devices: [Device],
        _ adapters: [Adapter],
        _ queue: SteppedQueue,
        _ released: inout ReleasedObjects
    ) -> ConcurrentCalls {
        let apps = [0, 1, 0].map { FuzzedApp(adapter: adapters[$0], queue: queue.queue, world: world) }
        for packet in script.packets {
            let app = apps[Int(packet.choice >> 5) % apps.count]
            switch packet.choice & 31 {
            case 28:
                let device = devices[Int(packet.octets.first ?? 0) >> 3 & 1]
                world.loop.execute { change(device, packet.octets.first ?? 0) }
            case 29: world.loop.execute { devices[0].inject(packet.octets.rawSpan) }
            case 30: app.reactions += packet.octets
            case let action: app.perform(action, packet.octets)
            }
            world.advance(by: .milliseconds(20 * Int(packet.delay)))
            queue.deliver()
            for adapter in adapters { requireConsistency(of: adapter, in: world) }
        }
        for device in devices { device.comeBack() }
        var calls = ConcurrentCalls(world: world)
        for app in apps {
            app.releaseAll()
            calls.add(app.calls)
            released.add(app)
        }
        return calls
    }

    /// Whether a packet of the script is sent to a host as it is.
    private static func isInjected(_ packet: Script.Packet) -> Bool { packet.choice & 31 == 29 }

    private static func requireConsistency(of adapter: Adapter, in world: World) {
        do {
            let contradiction = try world.run(limit: .zero) { await adapter.host.contradiction() }
            require(contradiction == nil, contradiction ?? "")
        } catch {
            stopFuzzing(error)
        }
    }

    private static func change(_ device: Device, _ number: UInt8) {
        switch number & 7 {
        case 0, 1: device.vanish()
        case 2: device.failWithHardwareError()
        default: device.comeBack()
        }
    }
}

/// The queue of the apps' delegates, which stands still while the world runs.
struct SteppedQueue {
    let queue = DispatchQueue(label: "manager-fuzzing")

    init() {
        queue.suspend()
    }

    /// Makes the calls of delegates that wait.
    func deliver() {
        queue.resume()
        // Calls may be added on the managers' own queues, which lead to this one.
        for _ in 0..<4 { queue.sync {} }
        queue.suspend()
    }

    func end() {
        queue.resume()
    }
}

/// Objects that nobody must keep.
struct ReleasedObjects {
    private struct Weak {
        weak var object: AnyObject?
    }

    private var objects: [Weak] = []

    mutating func add(_ app: FuzzedApp) {
        objects.append(Weak(object: app))
        for object in app.made.values { objects.append(Weak(object: object)) }
        app.made.values = []
    }

    func requireNone() {
        for weak in objects {
            require(weak.object == nil, "\(weak.object.map { "\($0)" } ?? "an object") is never released")
        }
    }
}
