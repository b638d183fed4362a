import BLE
import BluetoothTesting
import Testing

private let scripted = ScriptedService(
    "A800",
    [ScriptedCharacteristic("A801", properties: [.read], value: [7])]
)

/// Long connection intervals, so that simulating hours takes seconds.
private let slowParameters = ConnectionParameters(
    interval: .seconds(1)...(.seconds(1)),
    supervisionTimeout: .seconds(6)
)

@Suite("A scan that connects to what it reports")
struct RepeatedScanTests {
    /// Starts a task that scans and records the reported addresses.
    private static func scan(_ central: Central, _ world: World) -> (log: Log<DeviceAddress>, task: Task<Void, Never>) {
        let log = Log<DeviceAddress>()
        let task = Task(executorPreference: world.taskExecutor) {
            do {
                for try await advertisement in central.scan(ScanOptions(serviceUUIDs: ["A800"], isActive: false)) {
                    log.append(advertisement.address)
                }
            } catch {}
        }
        return (log, task)
    }

    @Test("A peer is reported again after its link was ended by either side or was lost")
    func scanReportsADisconnectedPeerAgain() throws {
        try World.run(limit: .seconds(3600)) { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let central = try await world.device("gateway").openAdapter().central
            let (log, task) = Self.scan(central, world)
            try await world.sleep(for: .seconds(10))
            #expect(log.all.count == 1)
            let first = try await central.connect(to: lamp.address)
            await first.disconnect()
            try await world.sleep(for: .seconds(10))
            #expect(log.all.count == 2)
            let second = try await central.connect(to: lamp.address)
            await lamp.disconnectClients()
            _ = try await second.disconnection()
            try await world.sleep(for: .seconds(10))
            #expect(log.all.count == 3)
            let third = try await central.connect(to: lamp.address)
            lamp.vanish()
            _ = try await third.disconnection()
            lamp.comeBack()
            try await world.sleep(for: .seconds(60))
            #expect(log.all == Array(repeating: lamp.address, count: 4))
            task.cancel()
            await task.value
        }
    }

    @Test("A peer is reported again when an attempt to connect to it has failed")
    func scanReportsAPeerAgainAfterAFailedAttempt() throws {
        try World.run(limit: .seconds(3600)) { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let central = try await world.device("gateway").openAdapter().central
            let (log, task) = Self.scan(central, world)
            try await world.sleep(for: .seconds(10))
            lamp.vanish()
            await #expect(throws: BLEError.self) {
                _ = try await central.connect(to: lamp.address, timeout: .seconds(5))
            }
            try await world.sleep(for: .seconds(10))
            #expect(log.all.count == 1)
            lamp.comeBack()
            try await world.sleep(for: .seconds(60))
            #expect(log.all.count == 2)
            task.cancel()
            await task.value
        }
    }

    @Test("Connected and other peers are reported again after a restart of the controller")
    func scanReportsPeersAgainAfterARecovery() throws {
        try World.run(limit: .seconds(3600)) { world in
            let lamps = [
                try await world.peripheral("lamp", services: [scripted]),
                try await world.peripheral("other lamp", services: [scripted]),
            ]
            let gateway = world.device("gateway")
            let central = try await gateway.openAdapter().central
            let (log, task) = Self.scan(central, world)
            try await world.sleep(for: .seconds(10))
            let peer = try await central.connect(to: lamps[0].address)
            gateway.failWithHardwareError()
            _ = try await peer.disconnection()
            try await world.sleep(for: .seconds(60))
            #expect(Set(log.all.dropFirst(2)) == Set(lamps.map(\.address)))
            task.cancel()
            await task.value
        }
    }

    @Test("A peer is reported again when its advertising data changes, and only then")
    func scanReportsChangedDataOfLegacyAdvertising() throws {
        try World.run { world in
            let sender = try await world.device("sender").openAdapter()
            let central = try await world.device("gateway").openAdapter().central
            let names = Log<String?>()
            let task = Task(executorPreference: world.taskExecutor) {
                do {
                    for try await advertisement in central.scan(ScanOptions(isActive: false)) {
                        names.append(advertisement.localName)
                    }
                } catch {}
            }
            for name in ["closed", "open"] {
                let advertising = try await sender.peripheral.startAdvertising(
                    AdvertisementConfiguration(
                        isConnectable: false,
                        isScannable: false,
                        advertisingData: AdvertisingData([.completeLocalName(name)]),
                        usesExtendedPDUs: false
                    )
                )
                try await world.sleep(for: .seconds(10))
                await advertising.stop()
            }
            #expect(names.all == ["closed", "open"])
            task.cancel()
            await task.value
        }
    }

    @Test("Peers are reported again on request, and only to the scan of the request")
    func scanReportsPeersAgainThatItsAppDropped() throws {
        try World.run { world in
            let lamps = [
                try await world.peripheral("lamp", services: [scripted]),
                try await world.peripheral("other lamp", services: [scripted]),
            ]
            let host = try await world.device("gateway").openAdapter().host
            let (log, other) = (Log<DeviceAddress>(), Log<DeviceAddress>())
            let options = ScanOptions(isActive: false)
            _ = await host.startScan(options) { if case .advertisement(let heard) = $0 { other.append(heard.address) } }
            let scan = await host.startScan(options) {
                if case .advertisement(let heard) = $0 { log.append(heard.address) }
            }
            try await world.sleep(for: .seconds(10))
            #expect(log.all.count == 2)
            await host.reportAgain([lamps[1].address], in: scan)
            try await world.sleep(for: .seconds(10))
            #expect(log.all.dropFirst(2) == [lamps[1].address])
            await host.reportAgain(nil, in: scan)
            try await world.sleep(for: .seconds(10))
            #expect(Set(log.all.dropFirst(3)) == Set(lamps.map(\.address)) && log.all.count == 5)
            #expect(other.all.count == 2)
        }
    }

    @Test(
        "A limit for the silence of a scan below 1 s does not restart a scan that receives packets",
        arguments: [Duration.milliseconds(10), .zero, .seconds(-1)]
    )
    func shortLimitForSilenceDoesNotRestartTheScan(limit: Duration) throws {
        try World.run { world in
            _ = try await world.peripheral("lamp", services: [scripted])
            let adapter = try await world.device("gateway").openAdapter { $0.scanSilenceTimeout = limit }
            let events = await adapter.events()
            let scanning = Task(executorPreference: world.taskExecutor) {
                for try await _ in adapter.central.scan(ScanOptions(isActive: false, reportsDuplicates: true)) {}
            }
            try await world.sleep(for: .seconds(10))
            await adapter.close()
            _ = await scanning.result
            var restartCount = 0
            for await event in events {
                switch event {
                case .scanRestarted, .resetting: restartCount += 1
                default: break
                }
            }
            #expect(restartCount == 0)
        }
    }

    @Test("A gateway that connects to each reported peer keeps its 12 links")
    func gatewayThatScansKeepsItsLinks() throws {
        try World.run(limit: .seconds(7200)) { world in
            var lamps: [ScriptedPeripheral] = []
            for number in 1...12 { lamps.append(try await world.peripheral("lamp \(number)", services: [scripted])) }
            let adapter = try await world.device("gateway").openAdapter()
            let task = Task(executorPreference: world.taskExecutor) {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    let options = ScanOptions(serviceUUIDs: ["A800"], isActive: false)
                    for try await advertisement in adapter.central.scan(options) {
                        group.addTask {
                            let peer = try? await adapter.central.connect(
                                to: advertisement.address,
                                parameters: slowParameters
                            )
                            if let peer { _ = try await peer.disconnection() }
                        }
                    }
                }
            }
            try await world.sleep(for: .seconds(120))
            #expect(await adapter.links == 12)
            for lamp in lamps { lamp.vanish() }
            try await world.sleep(for: .seconds(60))
            #expect(await adapter.links == 0)
            for lamp in lamps { lamp.comeBack() }
            try await world.sleep(for: .seconds(300))
            #expect(await adapter.links == 12)
            await adapter.close()
            _ = await task.result
        }
    }
}
