import BLE
import BluetoothTesting

// Periodic advertising trains of stations, and the transfer of synchronizations.
extension Station {
    /// The service that the advertisements of trains list; also the values of trains.
    static let train: BluetoothUUID = "FD5C"

    private static func data(_ value: [UInt8]) -> AdvertisingData {
        AdvertisingData([.manufacturerData(CompanyIdentifier(rawValue: 0xFFFF), value)])
    }

    /// Starts a train. Its controller must be able to.
    func startTrain(_ dice: Dice) async throws -> AdvertisingSet {
        let value = ledger.makeValue(of: Station.train, length: 4)
        return try await adapter.peripheral.startAdvertising(
            AdvertisementConfiguration(
                isConnectable: false,
                isScannable: false,
                interval: .milliseconds(dice.number(in: 50...300)),
                advertisingData: AdvertisingData([.serviceUUIDs([Station.train], isComplete: true)]),
                periodic: PeriodicAdvertisingConfiguration(
                    interval: .milliseconds(dice.number(in: 20...300)),
                    data: Self.data(value)
                )
            )
        )
    }

    /// Changes the data of the train until the task is cancelled.
    func changeTrain(_ train: AdvertisingSet, _ world: World, _ dice: Dice) async {
        while !Task.isCancelled {
            try? await world.sleep(for: .milliseconds(dice.number(in: 50...3000)))
            if Task.isCancelled { return }
            let value = ledger.makeValue(of: Station.train, length: dice.number(in: 4...200))
            _ = await ledger.operation("\(name) changes its train", within: .seconds(120)) {
                try await train.setPeriodicData(Self.data(value))
            }
        }
    }

    /// Receives the trains that peers transfer until the task is cancelled.
    func receiveTransfers(_ world: World, _ dice: Dice) async {
        let trains = adapter.central.transferredTrains(PeriodicSyncTransferParameters(timeout: .seconds(2)))
        await withDiscardingTaskGroup { group in
            do {
                for try await event in trains {
                    guard case .received(let train) = event else { continue }
                    ledger.count("trains transferred")
                    let duration = Duration.milliseconds(dice.number(in: 0...4000))
                    group.addTask { [self] in await follow(train, for: duration, world) }
                }
            } catch {}
            group.cancelAll()
        }
    }

    private func follow(_ train: TransferredTrain, for duration: Duration, _ world: World) async {
        let stream = ledger.makeStream(from: index, of: Station.train)
        let (ledger, place) = (ledger, "\(name), from a transferred train")
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for await event in train.events {
                    if case .received(let report) = event { ledger.expect(report, in: stream, where: place) }
                }
            }
            group.addTask { try? await world.sleep(for: duration) }
            await group.next()
            group.cancelAll()
        }
    }
}

extension Ledger {
    /// Checks a report of a train. The data of a longer report may be incomplete.
    func expect(_ report: PeriodicAdvertisement, in stream: Stream, where place: String) {
        guard !report.isTruncated else { return count("truncated reports of trains") }
        guard let value = report.data.manufacturerData.first?.data else {
            return violate("\(place): a report of a train without its data")
        }
        count("reports of trains")
        expectSameOrNext(value, in: stream, where: place)
    }
}

extension CentralTask {
    /// Finds the train of a station and receives it for some time.
    func followTrain(of target: Station, for duration: Duration) async {
        guard target.trainSet != nil else { return }
        let search = "\(station.name) looks for the train of \(target.name)"
        let sid = await ledger.operation(search, within: .seconds(60)) { await findTrain(of: target) }
        guard case .some(.some(let sid)) = sid else { return }
        let request = PeriodicTrainRequest(address: target.address, sid: sid, timeout: .seconds(2))
        _ = await ledger.operation("\(station.name) follows \(target.name)", within: duration + .seconds(60)) {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await receive(request, from: target) }
                group.addTask { [world] in try? await world.sleep(for: duration) }
                await group.next()
                group.cancelAll()
            }
        }
    }

    /// Returns the identifier of the advertising set of a train; nil if it is not found.
    private func findTrain(of target: Station) async -> UInt8? {
        let (central, world) = (station.adapter.central, world)
        return await withTaskGroup(of: UInt8?.self) { group in
            group.addTask {
                do {
                    for try await found in central.scan(ScanOptions(serviceUUIDs: [Station.train]))
                    where found.address == target.address {
                        return found.advertisingSetIdentifier
                    }
                } catch {}
                return nil
            }
            group.addTask {
                try? await world.sleep(for: .seconds(5))
                return nil
            }
            let found = await group.next() ?? nil
            group.cancelAll()
            return found
        }
    }

    private func receive(_ request: PeriodicTrainRequest, from target: Station) async {
        let stream = ledger.makeStream(from: target.index, of: Station.train)
        let place = "\(station.name), from the train of \(target.name)"
        var isSynchronized = false
        do throws(BLEError) {
            for try await event in station.adapter.central.periodicAdvertising(request) {
                switch event {
                case .synchronized:
                    ledger.count("synchronizations")
                    isSynchronized = true
                    if dice.chance(0.3) { await forward(request) }
                case .received(let report): ledger.expect(report, in: stream, where: place)
                case .lost:
                    if !isSynchronized { ledger.violate("\(place): lost, but it was never received") }
                    if !ledger.hasFaults { ledger.violate("\(place): lost, although there are no faults") }
                    isSynchronized = false
                case .missed: ledger.violate("\(place): a subevent of a train that has none")
                case .eventsDropped: ledger.violate("\(place): events were dropped")
                }
            }
        } catch {
            // Another task of the station may receive the train already.
        }
    }

    /// Transfers the synchronization with a train to a client of this station.
    private func forward(_ request: PeriodicTrainRequest) async {
        let peripheral = station.adapter.peripheral
        guard let client = dice.pick(await peripheral.clients)?.id else { return }
        _ = await ledger.operation("\(station.name) transfers a synchronization", within: .seconds(60)) {
            do {
                try await peripheral.transferSynchronization(with: request, to: client)
            } catch BLEError.invalidArgument {
                // The train was lost in the meantime.
            }
        }
    }
}

extension CentralTask.Visit {
    /// Transfers this central's train to the peripheral.
    func transferTrain() async {
        guard let train = task.station.trainSet else { return }
        _ = await ledger.operation("\(names): transfer a train", within: .seconds(60)) {
            try await peer.transferTrain(of: train)
        }
    }

    /// Has the peripheral transfer its train to one of its centrals.
    func requestTrain(_ dice: Dice) async {
        let peripheral = target.adapter.peripheral
        guard let train = target.trainSet, let client = dice.pick(await peripheral.clients)?.id else { return }
        _ = await ledger.operation("\(target.name) transfers its train", within: .seconds(60)) {
            try await peripheral.transferTrain(of: train, to: client)
        }
    }
}
