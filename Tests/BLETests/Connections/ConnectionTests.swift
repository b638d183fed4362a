import BLEHCI
import BluetoothTypes
import Testing

@testable import BLE
@testable import BLEVirtualController
@testable import BluetoothTesting

@Suite("The Link Layer connection of two hosts")
struct ConnectionTests {
    private static let configure: @Sendable (inout Adapter.Configuration) -> Void = {
        $0.usesSubrating = true
        $0.usesAdvertisingCoding = true
    }

    /// Two hosts with a link.
    private struct Pair {
        let devices: (central: Device, peripheral: Device)
        let central: Adapter
        let peripheral: Adapter
        let link: RemotePeripheral
        let client: ClientID
        /// Kept for the life of the pair: a set that is released stops.
        let advertising: BLE.AdvertisingSet

        init(
            in world: World,
            parameters: ConnectionParameters = ConnectionParameters(),
            configure: (inout ControllerConfiguration) -> Void = { _ in }
        ) async throws {
            devices = (
                world.device("central", configure: configure),
                world.device("peripheral", at: Position(x: 3, y: 0), configure: configure)
            )
            central = try await devices.central.openAdapter(ConnectionTests.configure)
            peripheral = try await devices.peripheral.openAdapter(ConnectionTests.configure)
            let events = await peripheral.peripheral.events()
            advertising = try await peripheral.peripheral.startAdvertising(AdvertisementConfiguration())
            link = try await central.central.connect(
                to: try await peripheral.information.identityAddress,
                parameters: parameters
            )
            var connected: ClientID?
            for await event in events {
                if case .connected(let client, _) = event {
                    connected = client
                    break
                }
            }
            client = try #require(connected)
        }

        var serverSide: Connection { peripheral.peripheral.connection(to: client) }
    }

    private static func next(_ iterator: inout LinkEvents.Iterator) async throws -> LinkEvent {
        try #require(try await iterator.next())
    }

    private static func first(of events: LinkEvents) async throws -> LinkEvent {
        var iterator = events.makeAsyncIterator()
        return try await next(&iterator)
    }

    private static func firstSubrate(in events: LinkEvents) async throws -> NegotiatedConnectionParameters {
        var iterator = events.makeAsyncIterator()
        while true {
            let event = try await next(&iterator)
            if case .parametersChanged(let parameters) = event, parameters.subrateFactor > 1 { return parameters }
        }
    }

    /// All events until the link ends.
    private static func all(of events: LinkEvents) async -> [LinkEvent] {
        var heard: [LinkEvent] = []
        var iterator = events.makeAsyncIterator()
        do throws(BLEError) {
            while let event = try await iterator.next() { heard.append(event) }
        } catch {
            if case .disconnected = error {} else { Issue.record("\(error)") }
        }
        return heard
    }

    // MARK: Subrate

    @Test func centralSubratesAndThePeripheralIsInformed() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            async let informed = Self.firstSubrate(in: pair.serverSide.events())
            try await world.sleep(for: .milliseconds(1))
            let wanted = SubrateParameters(factor: 2...10, maximumLatency: 1, continuationNumber: 3)
            try await pair.link.connection.requestSubrate(wanted)
            let own = try await pair.link.connection.information.parameters
            #expect(own.subrateFactor == 10 && own.continuationNumber == 3 && own.latencyInEvents == 1)
            let peers = try await informed
            #expect(peers.subrateFactor == 10 && peers.continuationNumber == 3)
            #expect(peers.supervisionTimeout == .seconds(4))
        }
    }

    @Test func peripheralGetsTheSubrateThatTheCentralAccepts() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            await #expect(throws: BLEError.self, "the central has no defaults") {
                try await pair.serverSide.requestSubrate(SubrateParameters(factor: 2...8))
            }
            try await pair.link.connection.requestSubrate(SubrateParameters(factor: 1...4))
            try await pair.serverSide.requestSubrate(SubrateParameters(factor: 2...8))
            #expect(try await pair.serverSide.information.parameters.subrateFactor == 4)
        }
    }

    @Test func defaultSubrateIsForLaterLinksAndSurvivesAReset() throws {
        try World.run { world in
            let devices = (world.device("central"), world.device("peripheral"))
            let central = try await devices.0.openAdapter(ConnectionTests.configure)
            let peripheral = try await devices.1.openAdapter(ConnectionTests.configure)
            try await central.central.setDefaultSubrate(SubrateParameters(factor: 1...6, continuationNumber: 1))
            devices.0.failWithHardwareError()
            let events = await peripheral.peripheral.events()
            let advertising = try await peripheral.peripheral.startAdvertising(AdvertisementConfiguration())
            defer { withExtendedLifetime(advertising) {} }
            let address = try await peripheral.information.identityAddress
            let link = try await central.central.connect(to: address)
            for await case .connected(let client, _) in events {
                let connection = peripheral.peripheral.connection(to: client)
                try await connection.requestSubrate(SubrateParameters(factor: 3...20))
                let parameters = try await connection.information.parameters
                #expect(parameters.subrateFactor == 6 && parameters.continuationNumber == 1)
                break
            }
            await link.disconnect()
        }
    }

    @Test func subratingIsRefusedWhereADeviceLacksIt() throws {
        try World.run { world in
            let pair = try await Pair(in: world) { configuration in
                if configuration.address.value & 1 == 0 { configuration.features.remove(.connectionSubrating) }
            }
            let wanted = SubrateParameters(factor: 2...4)
            for connection in [pair.link.connection, pair.serverSide] {
                do throws(BLEError) {
                    try await connection.requestSubrate(wanted)
                    Issue.record("it was accepted")
                } catch {
                    if case .notSupported = error {} else { Issue.record("\(error)") }
                }
            }
            await #expect(throws: BLEError.self) {
                try await pair.link.connection.requestSubrate(SubrateParameters(factor: 1...501))
            }
        }
    }

    @Test func hostsThatDoNotUseSubratingHaveNone() throws {
        try World.run { world in
            let devices = (world.device("central"), world.device("peripheral"))
            let central = try await devices.0.openAdapter(Self.configure)
            let peripheral = try await devices.1.openAdapter()
            let advertising = try await peripheral.peripheral.startAdvertising(AdvertisementConfiguration())
            defer { withExtendedLifetime(advertising) {} }
            let link = try await central.central.connect(to: try await peripheral.information.identityAddress)
            do throws(BLEError) {
                try await link.connection.requestSubrate(SubrateParameters(factor: 2...4))
                Issue.record("it was accepted")
            } catch {
                #expect("\(error)".contains("does not support subrated connections"))
            }
            do throws(BLEError) {
                try await peripheral.central.setDefaultSubrate(SubrateParameters(factor: 2...4))
                Issue.record("it was accepted")
            } catch {
                #expect("\(error)".contains("usesSubrating"))
            }
        }
    }

    // MARK: Transmit power and path loss

    @Test func powersAreReadAtBothEnds() throws {
        try World.run { world in
            let pair = try await Pair(in: world) { configuration in
                configuration.transmitPower = configuration.address.value & 1 == 1 ? 8 : 2
            }
            let own = try await pair.link.connection.readTransmitPower()
            #expect(own.current.level == 8 && own.maximumLevel == 8 && own.current.isMaximum)
            #expect(try await pair.link.connection.readPeerTransmitPower().level == 2)
            #expect(try await pair.serverSide.readPeerTransmitPower(on: .le2M).level == 8)
        }
    }

    @Test func controllerThatKnowsNoPowersRefuses() throws {
        try World.run { world in
            let pair = try await Pair(in: world) { $0.features.remove(.powerControlRequest) }
            let connection = pair.link.connection
            do throws(BLEError) {
                _ = try await connection.readPeerTransmitPower()
                Issue.record("it was read")
            } catch {
                if case .notSupported = error {} else { Issue.record("\(error)") }
            }
            var events = connection.events(transmitPower: true).makeAsyncIterator()
            do throws(BLEError) {
                _ = try await events.next()
                Issue.record("an event")
            } catch {
                if case .notSupported = error {} else { Issue.record("\(error)") }
            }
        }
    }

    @Test func changedPowerAndPathLossAreReportedUntilTheLinkEnds() throws {
        try World.run { world in
            let pair = try await Pair(in: world) { $0.minimumTransmitPower = -20 }
            let thresholds = PathLossThresholds(low: 45, high: 70)
            let events = pair.link.connection.events(transmitPower: true, pathLoss: thresholds)
            async let heard = Self.all(of: events)
            try await world.sleep(for: .seconds(1))
            pair.devices.peripheral.setTransmitPower(-12)
            try await world.sleep(for: .seconds(1))
            pair.devices.peripheral.position = Position(x: 60, y: 0)
            try await world.sleep(for: .seconds(2))
            await pair.link.disconnect()
            let all = await heard
            let changes = all.compactMap { event -> Int? in
                if case .transmitPowerChanged(let change) = event, change.isOfPeer { change.power.level } else { nil }
            }
            // Far away, the signal of -12 dBm is weak. So the controller asks its peer for more.
            #expect(changes.first == -12 && changes.last.map { $0 > -12 } == true)
            let zones = all.compactMap { event -> PathLossZone? in
                if case .pathLossZoneEntered(let report) = event { report.zone } else { nil }
            }
            #expect(zones == [.middle, .high])
        }
    }

    @Test func reportsStopWithTheirObserver() throws {
        try World.run { world in
            let pair = try await Pair(in: world) { $0.minimumTransmitPower = -20 }
            let connection = pair.link.connection
            do {
                async let first = Self.first(of: connection.events(transmitPower: true))
                try await world.sleep(for: .seconds(1))
                pair.devices.central.setTransmitPower(-6)
                guard case .transmitPowerChanged(let change) = try await first else {
                    Issue.record("another event")
                    return
                }
                #expect(!change.isOfPeer && change.delta == -6 && change.power.level == -6)
            }
            try await world.sleep(for: .seconds(1))
            let places = try #require(pair.devices.central.controller?.links).compactMap { $0 }
            #expect(places.count == 1 && places[0].end.power.reportsLocal == false)
        }
    }

    // MARK: Coding and channels

    @Test func codingOfAConnectionIsChosen() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            try await pair.link.connection.setPHY(transmit: .leCoded, receive: .leCoded, coding: .preferS2Coding)
            let link = try await pair.link.connection.information
            #expect(link.transmitPHY == .leCoded && link.receivePHY == .leCoded)
        }
    }

    @Test func classificationsAreASecondApart() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let start = world.elapsed
            for map: UInt64 in [0xFF, 0xFF00, 0x1F_FFFF_FFFF] {
                try await pair.central.central.classifyChannels(ChannelMap(rawValue: map))
            }
            let time = world.elapsed - start
            #expect(time >= .seconds(2) && time < .seconds(3))
            await #expect(throws: BLEError.self) {
                try await pair.central.central.classifyChannels(ChannelMap(rawValue: 1))
            }
        }
    }

    // MARK: Advertising

    @Test func codingOfAdvertisingIsReceived() throws {
        try World.run { world in
            let devices = (world.device("scanner"), world.device("advertiser"))
            let scanner = try await devices.0.openAdapter(ConnectionTests.configure)
            let advertiser = try await devices.1.openAdapter(ConnectionTests.configure)
            let configuration = AdvertisementConfiguration(
                isConnectable: false,
                isScannable: false,
                phys: AdvertisingPHYs(
                    primary: .leCoded,
                    secondary: .leCoded,
                    primaryCoding: .requireS8Coding,
                    secondaryCoding: .requireS2Coding
                )
            )
            let advertising = try await advertiser.peripheral.startAdvertising(configuration)
            defer { withExtendedLifetime(advertising) {} }
            for try await advertisement in scanner.central.scan(ScanOptions(phys: .leCoded)) {
                #expect(advertisement.primaryPHY == .leCoded && advertisement.secondaryPHY == .leCodedS2)
                break
            }
        }
    }
}
