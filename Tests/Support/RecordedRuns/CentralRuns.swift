import BLE

extension RecordedRun {
    /// Returns bytes whose values depend on their positions.
    static func octets(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 * 31 + 7) }
    }

    private static func explore(
        _ name: String,
        _ address: DeviceAddress = Bumble.address
    ) -> RecordedRun {
        RecordedRun(name) { adapter, stage in
            try await adapter.meet(address, isSought: true, on: stage) { try await $0.explore(stage) }
        }
        .configured { $0.security.securesOnDemand = false }
    }

    /// A central and the values of its peer.
    static let values: [RecordedRun] = [
        explore("explore-extended"),
        explore("explore-legacy"),
        explore("explore-kernel", DeviceAddress(0xF234_5678_9ABC, isRandom: true)),
        explore("explore-bluez", DeviceAddress(0x00AA_0101_0001, isRandom: false)),
        RecordedRun("long-values") { adapter, stage in
            try await adapter.meet(on: stage) {
                let known = try await KnownPeer($0, stage)
                _ = try await $0.read(known.handle(Bumble.long))
                let store = try known.handle(Bumble.store)
                for count in [0, 1, 22, 252, 253, 512] {
                    try await $0.write(octets(count), to: store)
                    guard try await $0.read(store) == octets(count) else { throw UnexpectedPeer(what: "another value") }
                }
            }
        },
        RecordedRun("small-mtu") { adapter, stage in
            try await adapter.meet(on: stage) {
                let known = try await KnownPeer($0, stage)
                _ = try await $0.read(known.handle(Bumble.long))
                try await $0.write(octets(100), to: known.handle(Bumble.store))
                try await $0.write(octets(20), to: known.handle(Bumble.sink), kind: .withoutResponse)
            }
        }.configured { $0.mtu = 23 },
        RecordedRun("reliable-write") { adapter, stage in
            try await adapter.meet(on: stage) {
                let known = try await KnownPeer($0, stage)
                let handle = try known.handle(Bumble.reliable)
                try await $0.write(octets(40), to: handle, kind: .reliable)
                try await $0.writeReliably([
                    .init(octets(300), to: handle),
                    .init(octets(30), to: try known.handle(Bumble.store)),
                ])
            }
        },
        RecordedRun("attribute-errors") { adapter, stage in
            try await adapter.meet(on: stage) {
                let known = try await KnownPeer($0, stage)
                for uuid in [Bumble.encrypted, Bumble.authenticated, Bumble.authorized, Bumble.failing] {
                    try await $0.tryToRead(known.handle(uuid))
                }
                for uuid in [Bumble.encrypted, Bumble.failing] {
                    try await $0.tryToWrite([1], to: known.handle(uuid))
                }
                try await $0.tryToRead(0xFFFE)
                _ = try? await $0.read(uuid: "2AFF")
            }
        }.configured { $0.security.securesOnDemand = false },
        RecordedRun("notifications") { try await receive(Bumble.notify, $0, $1) },
        RecordedRun("indications") { try await receive(Bumble.indicate, $0, $1) },
    ]

    private static func receive(_ uuid: BluetoothUUID, _ adapter: Adapter, _ stage: any Stage) async throws {
        try await adapter.meet(on: stage) {
            let known = try await KnownPeer($0, stage)
            let subscription = try await $0.subscribe(to: known.characteristic(uuid))
            var count = 0
            for try await _ in subscription {
                count += 1
                if count == 12 { break }
            }
            await subscription.cancel()
        }
    }

    /// Events of links and controllers, and advertising.
    static let signals: [RecordedRun] = [
        RecordedRun("lost-link") { adapter, stage in
            let peer = try await adapter.central.connect(to: Bumble.address)
            let known = try await KnownPeer(peer, stage)
            stage.tell("vanish")
            while await peer.isConnected {
                try? await peer.write([1], to: known.handle(Bumble.store))
                try await stage.sleep(for: .milliseconds(200))
            }
        },
        RecordedRun("peer-disconnects") { adapter, stage in
            let peer = try await adapter.central.connect(to: Bumble.address)
            _ = try await peer.discoverServices()
            stage.tell("disconnect")
            _ = try await peer.disconnection()
            _ = try? await peer.discoverServices()
        },
        RecordedRun("parameter-updates") { adapter, stage in
            try await adapter.meet(on: stage) {
                _ = try await $0.discoverServices()
                try await $0.updateConnectionParameters(
                    ConnectionParameters(
                        interval: .milliseconds(30)...(.milliseconds(50)),
                        latencyInEvents: 2,
                        supervisionTimeout: .seconds(6)
                    )
                )
                stage.tell("update")
                while try await $0.connectionParameters.latencyInEvents != 4 {
                    try await stage.sleep(for: .milliseconds(50))
                }
                try await stage.sleep(for: .milliseconds(200))
            }
        },
        RecordedRun("extended-scan") { adapter, stage in
            for try await advertisement in adapter.central.scan()
            where advertisement.address == Bumble.address && advertisement.advertisingData.count == 480 { break }
            try await stage.sleep(for: .milliseconds(200))
        },
        RecordedRun("extended-advertising") { adapter, stage in
            let long = try await adapter.peripheral.startAdvertising(
                AdvertisementConfiguration(
                    isConnectable: false,
                    isScannable: false,
                    interval: .milliseconds(20),
                    advertisingData: AdvertisingData([
                        .completeLocalName("extended"),
                        .manufacturerData(CompanyIdentifier(rawValue: 0xFFFF), octets(240)),
                        .manufacturerData(CompanyIdentifier(rawValue: 0xFFFF), octets(200)),
                    ]),
                    address: DeviceAddress(0xF123_4567_89AB, isRandom: true),
                    usesExtendedPDUs: true
                )
            )
            stage.tell("advertising")
            try await stage.sleep(for: .milliseconds(500))
            let second = try await adapter.peripheral.startAdvertising(
                AdvertisementConfiguration(advertisingData: AdvertisingData([.flags([.generalDiscoverable])]))
            )
            try await stage.sleep(for: .milliseconds(500))
            await long.stop()
            await second.stop()
        },
        RecordedRun("controller-lost") { adapter, stage in
            try await adapter.meet(on: stage) { _ = try await $0.discoverServices() }
            try await stage.loseController(of: adapter)
            try await adapter.meet(on: stage) { _ = try await $0.discoverServices() }
        },
        RecordedRun("malformed-peripheral") { adapter, stage in
            for cue in ["short", "unsolicited", "otherHandles", "backwards"] {
                stage.tell(cue)
                let peer = try await adapter.central.connect(to: Bumble.address)
                _ = try? await peer.discoverAll()
                await peer.disconnect()
            }
        },
        RecordedRun("malformed-advertiser") { adapter, stage in
            var count = 0
            for try await advertisement in adapter.central.scan(ScanOptions(reportsDuplicates: true))
            where advertisement.address == Bumble.address {
                count += 1
                if count == 3 { break }
            }
            try await stage.sleep(for: .milliseconds(200))
        },
    ]

    /// L2CAP channels, opened by this side and by the peer.
    static let channels: [RecordedRun] = [
        RecordedRun("channel-opened") { adapter, stage in
            try await adapter.meet(on: stage) {
                let channel = try await $0.openChannel(psm: 0x0080)
                try await channel.write(octets(2000))
                var received = 0
                for try await piece in channel {
                    received += piece.count
                    if received >= 2000 { break }
                }
                await channel.finish()
            }
        },
        RecordedRun("channel-refused") { adapter, stage in
            try await adapter.meet(on: stage) { _ = try? await $0.openChannel(psm: 0x0099) }
        },
        RecordedRun("channel-accepted") { adapter, stage in
            let listener = try await adapter.peripheral.publishChannel(psm: 0x0080)
            async let serving: Void = adapter.serve(stage) { _, _ in }
            for await channel in listener {
                var received = 0
                for try await piece in channel {
                    received += piece.count
                    try await channel.write(piece)
                    if received >= 1500 { break }
                }
                _ = await channel.ending()
                break
            }
            try await serving
        },
    ]
}
