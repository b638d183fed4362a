import BLE
import BluetoothTesting

/// The work of one central in a simulation: it finds a station, connects, uses it and disconnects.
struct CentralTask: Sendable {
    let station: Station
    let others: [Station]
    let world: World
    let ledger: Ledger
    let dice: Dice
    let traits: WorldTraits
    /// Whether the devices use private addresses.
    let isPrivate: Bool

    /// Time limit for one GATT procedure. Each of its requests has 30 seconds, but a link on which one request times
    /// out is ended.
    private static let procedureBound = Duration.seconds(120)

    func run(rounds: Int) async {
        for _ in 0..<rounds {
            try? await world.sleep(for: .milliseconds(dice.number(in: 0...2000)))
            if dice.chance(0.3) { await scan() }
            guard let target = dice.pick(others) else { return }
            if traits.usesTrains {
                let dice = traits.split()
                let (leader, duration) = (dice.pick(others) ?? target, dice.number(in: 100...6000))
                await withTaskGroup(of: Void.self) { group in
                    if dice.chance(0.7) {
                        group.addTask { await followTrain(of: leader, for: .milliseconds(duration)) }
                    }
                    await visit(target)
                }
            } else {
                await visit(target)
            }
        }
    }

    private func scan() async {
        let central = station.adapter.central
        let (world, wanted) = (world, dice.number(in: 1...3))
        _ = await ledger.operation("\(station.name) scans", within: .seconds(60)) {
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    var count = 0
                    do {
                        for try await _ in central.scan(ScanOptions(serviceUUIDs: [Station.service])) {
                            count += 1
                            if count == wanted { break }
                        }
                    } catch {}
                }
                group.addTask { try? await world.sleep(for: .seconds(5)) }
                await group.next()
                group.cancelAll()
            }
        }
    }

    private func visit(_ target: Station) async {
        let timeout = Duration.milliseconds(dice.number(in: 500...8000))
        let central = station.adapter.central
        let parameters = ConnectionParameters(
            latencyInEvents: UInt16(dice.number(in: 0...2)),
            supervisionTimeout: .milliseconds(10 * dice.number(in: 50...400))
        )
        let peer = await ledger.operation(
            "\(station.name) connects to \(target.name)",
            within: timeout + .milliseconds(1)
        ) {
            try await central.connect(to: target.address, timeout: timeout, parameters: parameters)
        }
        guard let peer else { return }
        let services = await ledger.operation("\(station.name) discovers \(target.name)", within: Self.procedureBound) {
            try await peer.discoverAll()
        }
        if let service = services?.first(where: { $0.uuid == Station.service }) {
            let visit = Visit(peer: peer, target: target, service: service, task: self, dice: dice.split())
            if traits.pairs {
                let dice = traits.split()
                if dice.chance(0.6) { await visit.pair(again: dice.chance(0.1)) }
            }
            await withTaskGroup(of: Void.self) { group in
                if dice.chance(0.6) { group.addTask { await visit.listen() } }
                if dice.chance(0.3) { group.addTask { [dice = dice.split()] in await visit.use(dice) } }
                await visit.use(dice)
            }
        }
        if dice.chance(0.9) {
            _ = await ledger.operation("\(station.name) disconnects from \(target.name)", within: .seconds(60)) {
                await peer.disconnect()
            }
        }
    }

    /// The operations on one link.
    struct Visit: Sendable {
        let peer: RemotePeripheral
        let target: Station
        let service: RemoteService
        let task: CentralTask
        let dice: Dice

        var ledger: Ledger { task.ledger }
        var names: String { "\(task.station.name) on \(target.name)" }

        private func characteristic(_ uuid: BluetoothUUID) -> RemoteCharacteristic? {
            service.characteristics.first { $0.uuid == uuid }
        }

        func use(_ dice: Dice) async {
            for _ in 0..<dice.number(in: 1...6) {
                if !(await peer.isConnected) { return }
                let operations = task.traits.operations
                let number = dice.number(in: 0...11 + operations.count)
                if number > 11 {
                    await perform(operations[number - 12], dice)
                    continue
                }
                switch number {
                case 0, 1: await read(Station.stored)
                case 2: await read(Station.handled)
                case 3, 4: await write(dice)
                case 5: await writeCommands(dice)
                case 6: await cancelledRead(dice)
                case 7: await updateParameters(dice)
                case 8: await controlLink(dice)
                case 9: await discoverAgain()
                default: try? await task.world.sleep(for: .milliseconds(dice.number(in: 1...1500)))
                }
            }
        }

        private func perform(_ operation: LinkOperation, _ dice: Dice) async {
            switch operation {
            case .pair: await pair(again: false)
            case .pairAgain: await pair(again: true)
            case .forget: await forget(dice)
            case .concurrentReads: await readConcurrently(dice)
            case .concurrentWrites: await writeConcurrently(dice)
            case .channel: await useChannels(1, dice)
            case .channels: await useChannels(dice.number(in: 2...5), dice)
            case .transferTrain: await transferTrain()
            case .requestTrain: await requestTrain(dice)
            }
        }

        func read(_ uuid: BluetoothUUID) async {
            guard let handle = characteristic(uuid)?.valueHandle else { return }
            var partLengths = await partLengths()
            let value = await ledger.operation("\(names): read", within: procedureBound) {
                try await peer.read(handle)
            }
            if task.traits.usesBearers { partLengths.formUnion(await self.partLengths()) }
            // The ends of the link may have different ATT_MTUs if the response to Exchange MTU was lost.
            if ledger.losesData { return }
            if let value { ledger.expectSent(value, of: uuid, inPartsOf: partLengths, where: names) }
        }

        /// The lengths of the parts in which the bearers of the link read long values.
        private func partLengths() async -> Set<Int> {
            guard task.traits.usesBearers else { return [await peer.mtu - 1] }
            let mtu = await peer.mtu
            let enhanced = (try? await peer.linkInformation)?.enhancedBearerMTUs ?? []
            return Set((enhanced + [mtu]).map { $0 - 1 })
        }

        func write(_ dice: Dice) async {
            guard let handle = characteristic(Station.stored)?.valueHandle else { return }
            let value = ledger.makeValue(of: Station.stored, length: target.storedLength)
            let kind: WriteKind = dice.chance(0.3) ? .reliable : .withResponse
            _ = await ledger.operation("\(names): write", within: procedureBound) {
                try await peer.write(value, to: handle, kind: kind)
            }
        }

        func writeCommands(_ dice: Dice) async {
            guard let handle = characteristic(Station.commands)?.valueHandle else { return }
            for _ in 0..<dice.number(in: 1...30) {
                let value = ledger.makeValue(of: Station.commands, length: dice.number(in: 4...20))
                let done: Void? = await ledger.operation("\(names): write without response", within: procedureBound) {
                    try await peer.write(value, to: handle, kind: .withoutResponse)
                }
                if done == nil { return }
            }
        }

        func cancelledRead(_ dice: Dice) async {
            guard let handle = characteristic(Station.handled)?.valueHandle else { return }
            let (peer, world, delay) = (peer, task.world, dice.number(in: 0...200))
            _ = await ledger.operation("\(names): cancelled read", within: procedureBound) {
                await withTaskGroup(of: Void.self) { group in
                    group.addTask { _ = try? await peer.read(handle) }
                    group.addTask { try? await world.sleep(for: .milliseconds(delay)) }
                    await group.next()
                    group.cancelAll()
                }
            }
        }

        private func updateParameters(_ dice: Dice) async {
            let shortest = dice.number(in: 6...200)
            let parameters = ConnectionParameters(
                interval: .microseconds(1250 * shortest)...(.microseconds(1250 * (shortest + 10))),
                latencyInEvents: UInt16(dice.number(in: 0...3)),
                supervisionTimeout: .seconds(4)
            )
            _ = await ledger.operation("\(names): update parameters", within: .seconds(60)) {
                try await peer.updateConnectionParameters(parameters)
            }
        }

        private func controlLink(_ dice: Dice) async {
            let kind = dice.number(in: 0...2)
            _ = await ledger.operation("\(names): link control", within: .seconds(60)) {
                switch kind {
                case 0: _ = try await peer.readRSSI()
                case 1: try await peer.setPHY(transmit: .le2M, receive: .le2M)
                default: try await peer.setDataLength(bytes: 100)
                }
            }
        }

        private func discoverAgain() async {
            _ = await ledger.operation("\(names): discover", within: procedureBound) {
                try await peer.discoverServices()
            }
        }

        /// Subscribes to values of the target, receives some of them, and ends the subscription.
        func listen() async {
            let uuid = dice.chance(0.5) ? Station.notified : Station.indicated
            guard let characteristic = characteristic(uuid) else { return }
            let subscription = await ledger.operation("\(names): subscribe", within: procedureBound) {
                try await peer.subscribe(to: characteristic)
            }
            guard let subscription else { return }
            let stream = ledger.makeStream(from: target.index, of: uuid)
            let (ledger, names, world) = (ledger, names, task.world)
            let duration = Duration.milliseconds(dice.number(in: 100...4000))
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    do {
                        for try await value in subscription {
                            ledger.count("values of subscriptions")
                            ledger.expectNext(value.value, in: stream, where: names)
                        }
                    } catch {}
                }
                group.addTask { try? await world.sleep(for: duration) }
                await group.next()
                group.cancelAll()
            }
            _ = await ledger.operation("\(names): unsubscribe", within: procedureBound) {
                await subscription.cancel()
            }
        }

        private var procedureBound: Duration { CentralTask.procedureBound }
    }
}
