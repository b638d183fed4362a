import BLE
import BLEHCI
import BLEHCITransport
import BLEVirtualController
import BluetoothHost
import BluetoothTesting
import Logging

/// One run: a few devices that connect, exchange data and disconnect, and the faults during that, all decided by a
/// seed.
final class Simulation: Sendable {
    /// The result of a run.
    struct Outcome: Sendable {
        let seed: UInt64
        /// The violations of the rules, in order; empty if there are none.
        let violations: [String]
        /// Each device's HCI packets as a btsnoop file, with the device's name.
        let captures: [(name: String, bytes: [UInt8])]
        let operationCount: Int
        let errorCount: Int
        let deliveredCount: Int
        let duration: Duration
        /// How often the events of the world's traits happened, by their names.
        let counts: [String: Int]
    }

    private let world: World
    /// Whether hosts and faults are logged.
    private let isVerbose: Bool
    private let ledger: Ledger
    private let dice: Dice
    private let traits: WorldTraits
    private let confined: LoopConfined<State>
    private var state: State { confined.value }

    private final class State {
        var stations: [Station] = []
        var hosts: [BluetoothHost] = []
        var isPrivate = false
    }

    private init(seed: UInt64, recordsCaptures: Bool, isVerbose: Bool) {
        self.isVerbose = isVerbose
        world = World(seed: seed, recordsCaptures: recordsCaptures)
        ledger = Ledger(world: world)
        dice = Dice(world.makeGenerator())
        traits = WorldTraits(seed: seed)
        confined = LoopConfined(State(), to: world.loop)
    }

    /// Runs the seed's world to its end and checks that nothing of it remains in memory.
    static func run(seed: UInt64, recordsCaptures: Bool = false, isVerbose: Bool = false) -> Outcome {
        let watch = ReleaseWatch()
        var outcome = runWorld(seed: seed, recordsCaptures, isVerbose, watch)
        if outcome.violations.isEmpty, let leak = watch.leak { outcome = outcome.adding(leak) }
        return outcome
    }

    private static func runWorld(
        seed: UInt64,
        _ recordsCaptures: Bool,
        _ isVerbose: Bool,
        _ watch: ReleaseWatch
    ) -> Outcome {
        let simulation = Simulation(seed: seed, recordsCaptures: recordsCaptures, isVerbose: isVerbose)
        simulation.run(watch)
        return Outcome(
            seed: seed,
            violations: simulation.ledger.violations,
            captures: simulation.world.devices.map { ($0.name, $0.capture) },
            operationCount: simulation.ledger.operationCount,
            errorCount: simulation.ledger.errorCount,
            deliveredCount: simulation.ledger.deliveredCount,
            duration: simulation.world.elapsed,
            counts: simulation.ledger.counts
        )
    }

    private func run(_ watch: ReleaseWatch) {
        do {
            let act: @Sendable () async throws -> Void = { [self] in
                try await bringUp()
                await live()
                await heal()
                await closeAdapters()
            }
            try world.run(limit: .seconds(1800), afterEachStep: { checkStep(watch) }, act)
        } catch {
            ledger.violate("\(error)")
        }
        for host in state.hosts { checkEnd(of: host) }
        watch.add(world)
        world.close()
        for leak in LeakCheck.leaks(in: world, hosts: state.hosts) { ledger.violate(leak) }
    }

    // MARK: Acts

    private func bringUp() async throws {
        let count = dice.chance(0.2) ? 4 : dice.number(in: 2...3)
        // In some worlds the devices use private addresses. They are bonded then, because they could not be found
        // otherwise.
        let privacy = dice.chance(0.4) ? Duration.seconds(dice.number(in: 2...60)) : nil
        state.isPrivate = privacy != nil
        for index in 0..<count {
            let kind = ControllerKind.allCases[dice.number(in: 0...3)]
            let listSize = UInt8(dice.number(in: 1...4))
            let packetCount = UInt8(dice.number(in: 1...8))
            let packetLength = UInt16(dice.number(in: 27...251))
            let device = world.device("device\(index)") {
                $0.aclPacketCount = packetCount
                $0.aclDataLength = packetLength
                if privacy != nil {
                    $0.features = kind.features
                    $0.resolvingListSize = listSize
                }
            }
            let mtu = UInt16(dice.number(in: 23...517))
            let logger = isVerbose ? makeLogger(device.name) : nil
            let bearerLimit = traits.usesBearers ? traits.split().number(in: 0...5) : 0
            let adapter = try await device.openAdapter {
                $0.mtu = mtu
                $0.enhancedBearerLimit = bearerLimit
                if traits.pairs {
                    $0.security.keyLoss = .askToPairAgain
                    $0.pairingDelegate = RandomConsent(world: world, dice: traits.split())
                }
                if let privacy {
                    $0.usesPrivateAddresses = true
                    $0.privateAddressTimeout = privacy
                }
                if let logger { $0.logger = logger }
            }
            state.hosts.append(adapter.host)
            let station = try await Station(
                index: index,
                device: device,
                adapter: adapter,
                ledger: ledger,
                storedLength: dice.number(in: 4...512)
            )
            state.stations.append(station)
            try await station.publish(world, random: world.makeGenerator())
            try await station.advertise(every: .milliseconds(dice.number(in: 100...1000)))
            let features = privacy == nil ? LEFeatures.all : kind.features
            try await station.prepare(traits, supportsTrains: features.contains(.periodicAdvertising))
            guard privacy != nil else { continue }
            for other in state.stations.dropLast() {
                try await station.adapter.bond(with: other.adapter)
                try await other.adapter.bond(with: station.adapter)
            }
        }
    }

    /// A log with the world's time, on standard output.
    private func makeLogger(_ name: String) -> Logger {
        let time = Logger.MetadataProvider { [world] in ["time": "\(world.elapsed)"] }
        var logger = Logger(label: name) { StreamLogHandler.standardOutput(label: $0, metadataProvider: time) }
        logger.logLevel = .debug
        return logger
    }

    private var log: @Sendable (String) -> Void {
        if isVerbose { return { print($0) } }
        return { _ in }
    }

    private func live() async {
        let (stations, world, ledger, dice) = (state.stations, world, ledger, dice)
        let (traits, isPrivate) = (traits, state.isPrivate)
        await withTaskGroup(of: Void.self) { group in
            for station in stations {
                group.addTask { [dice = dice.split()] in await station.sendValues(world, dice) }
                addServices(of: station, to: &group)
            }
            if dice.chance(0.6) {
                ledger.hasFaults = true
                let faults = Faults(world: world, stations: stations, ledger: ledger, dice: dice.split(), log: log)
                group.addTask { await faults.run() }
            }
            await withTaskGroup(of: Void.self) { centrals in
                for station in stations where dice.chance(0.7) || station.index == 0 {
                    let task = CentralTask(
                        station: station,
                        others: stations.filter { $0.index != station.index },
                        world: world,
                        ledger: ledger,
                        dice: dice.split(),
                        traits: traits,
                        isPrivate: isPrivate
                    )
                    let rounds = dice.number(in: 1...2)
                    centrals.addTask { await task.run(rounds: rounds) }
                }
            }
            group.cancelAll()
        }
    }

    /// Starts the work of a station that the traits of the world require.
    private func addServices(of station: Station, to group: inout TaskGroup<Void>) {
        let (world, traits) = (world, traits)
        if let channels = station.channels {
            group.addTask { await station.serveChannels(channels, world, traits.split()) }
        }
        if let train = station.trainSet {
            group.addTask { await station.changeTrain(train, world, traits.split()) }
        }
        if traits.usesTrains { group.addTask { await station.receiveTransfers(world, traits.split()) } }
    }

    /// Ends all faults. Every host must then recover and work again.
    private func heal() async {
        Faults(world: world, stations: state.stations, ledger: ledger, dice: dice, log: log).heal()
        for station in state.stations {
            let up: Void? = await ledger.operation("\(station.name) comes up again", within: .seconds(100)) {
                while !(await station.adapter.host.inspect().isOn) { try await world.sleep(for: .milliseconds(100)) }
            }
            if up == nil { return }
        }
        // Links to lost peers last until their supervision timeouts.
        try? await world.sleep(for: .seconds(33))
        guard let central = state.stations.first, let target = state.stations.last else { return }
        let name = "\(central.name) reads \(target.name) at the end"
        let value = await ledger.operation(name, within: .seconds(200)) { try await read(target, from: central) }
        if value?.count != target.storedLength {
            ledger.violate("\(name), but gets nothing, though all faults are gone")
        }
    }

    /// Reads a value over a new link. Several attempts may be necessary after the faults.
    private func read(_ target: Station, from central: Station) async throws -> [UInt8] {
        guard let handle = target.handle(of: Station.stored) else {
            throw BLEError.invalidArgument("the station serves no stored value")
        }
        for attempt in 1... {
            do {
                let peer = try await central.adapter.central.connect(to: target.address, timeout: .seconds(30))
                let value = try await peer.read(handle)
                await peer.disconnect()
                return value
            } catch {
                if attempt == 5 { throw error }
                if attempt == 3, traits.pairs { try await renewBond(of: target, and: central) }
                try await world.sleep(for: .seconds(2))
            }
        }
        throw BLEError.cancelled
    }

    /// Removes the bonds of two stations, as people do whose devices no longer have the same key.
    private func renewBond(of one: Station, and other: Station) async throws {
        await one.adapter.removeBond(other.address)
        await other.adapter.removeBond(one.address)
        guard state.isPrivate else { return }
        try await one.adapter.bond(with: other.adapter)
        try await other.adapter.bond(with: one.adapter)
    }

    private func closeAdapters() async {
        for station in state.stations {
            _ = await ledger.operation("\(station.name) closes", within: .seconds(10)) { await station.close() }
        }
    }

    // MARK: Checks

    private func checkStep(_ watch: ReleaseWatch) {
        ledger.checkDeadlines()
        for (index, host) in state.hosts.enumerated() {
            if let contradiction = watch.check(host) { ledger.violate("device\(index): \(contradiction)") }
        }
    }

    private func checkEnd(of host: BluetoothHost) {
        world.loop.run(limit: .zero) {
            let inspection = host.assumeIsolated { $0.inspect() }
            if !inspection.isEmpty { ledger.violate("a closed host still holds something: \(inspection)") }
            return true
        }
    }
}

extension Simulation.Outcome {
    fileprivate func adding(_ violation: String) -> Simulation.Outcome {
        Simulation.Outcome(
            seed: seed,
            violations: violations + [violation],
            captures: captures,
            operationCount: operationCount,
            errorCount: errorCount,
            deliveredCount: deliveredCount,
            duration: duration,
            counts: counts
        )
    }
}
