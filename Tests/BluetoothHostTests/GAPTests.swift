import BLEByteCoding
import BLEHCI
import BluetoothHost
import BluetoothTypes
import Testing

private let address = DeviceAddress(0xC0FF_EE00_0001, isRandom: true)

private func report(
    _ type: LEAdvertisingReport.EventType,
    _ data: [UInt8],
    rssi: Int8 = -50,
    from peer: DeviceAddress = address
) -> [UInt8] {
    ScriptedController.report(of: peer, type, data, rssi: rssi)
}

private func extendedReport(
    _ type: LEExtendedAdvertisingReport.EventType,
    primaryPHY: PHY = .le1M,
    secondaryPHY: PHY = .none,
    advertisingSID: UInt8 = 0xFF
) -> [UInt8] {
    PacketBuffer.bytes { buffer in
        let data: [UInt8] = [0x02, 0x01, 0x06]
        buffer.append(PacketType.event.rawValue)
        LEExtendedAdvertisingReport.Report(
            eventType: type,
            address: PeerAddress(type: .random, value: address.value),
            primaryPHY: primaryPHY,
            secondaryPHY: secondaryPHY,
            advertisingSID: advertisingSID,
            rssi: -50,
            data: data.rawSpan
        ).encodePacket(into: &buffer)
    }
}

private let flagsAndService: [UInt8] = [0x02, 0x01, 0x06, 0x03, 0x03, 0x0D, 0x18]
private let name: [UInt8] = [0x05, 0x09] + Array("Test".utf8)

@Suite("Scanning")
struct ScanTests {
    private func scan(_ options: ScanOptions, _ packets: [[UInt8]]) throws -> [Advertisement] {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        let found = Recorder<Advertisement>()
        try fixture.run {
            _ = await host.startScan(options) { event in
                if case .advertisement(let advertisement) = event { found.append(advertisement) }
            }
        }
        fixture.loop.run(for: .milliseconds(5))
        for packet in packets { fixture.controller.emit(packet) }
        fixture.loop.run(for: .milliseconds(5))
        return found.all
    }

    @Test("Each new content is reported once: the advertisement, then the merged scan response")
    func eachNewContentIsReportedOnce() throws {
        let advertisement = report(.connectableScannableUndirected, flagsAndService)
        let response = report(.scanResponse, name, rssi: 127)
        let found = try scan(ScanOptions(), [advertisement, advertisement, response, response, advertisement])
        #expect(found.count == 2)
        #expect(found.first?.serviceUUIDs == ["180D"] && found.first?.localName == nil && found.first?.rssi == -50)
        #expect(found.last?.localName == "Test" && found.last?.serviceUUIDs == ["180D"] && found.last?.rssi == nil)
        #expect(found.allSatisfy { $0.isConnectable })
    }

    @Test("Padding after the advertising data does not hide the scan response")
    func paddingDoesNotHideTheScanResponse() throws {
        let advertisement = report(.connectableScannableUndirected, flagsAndService + [0, 0, 0, 0])
        let found = try scan(ScanOptions(), [advertisement, report(.scanResponse, name + [0, 0])])
        #expect(found.last?.localName == "Test" && found.last?.serviceUUIDs == ["180D"])
    }

    @Test("A second scan reports known advertisers again, and does not restart the controller's scan")
    func secondScanReportsKnownAdvertisersAgain() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        let reports = Recorder<Int>()
        let first = try fixture.run { await host.startScan(ScanOptions()) { _ in reports.append(1) } }
        fixture.loop.run(for: .milliseconds(5))
        let filters = fixture.controller.commands.compactMap { $0.decode(LESetScanEnable.self)?.filterDuplicates }
        #expect(filters == [false])
        fixture.controller.emit(report(.connectableScannableUndirected, flagsAndService))
        fixture.loop.run(for: .milliseconds(5))
        fixture.controller.forgetCommands()
        try fixture.run { _ = await host.startScan(ScanOptions()) { _ in reports.append(2) } }
        fixture.controller.emit(report(.connectableScannableUndirected, flagsAndService))
        fixture.loop.run(for: .milliseconds(5))
        #expect(reports.all == [1, 2])
        // The end of the first scan changes nothing for the second.
        try fixture.run { await host.stopScan(first) }
        fixture.loop.run(for: .milliseconds(5))
        #expect(fixture.controller.commands.isEmpty)
    }

    @Test("If duplicates are wanted, each packet is reported")
    func eachPacketIsReportedIfDuplicatesAreWanted() throws {
        let advertisement = report(.nonConnectableUndirected, flagsAndService)
        #expect(
            try scan(ScanOptions(reportsDuplicates: true), [advertisement, advertisement, advertisement]).count == 3
        )
    }

    @Test("Filters apply to the advertisement and the scan response together")
    func filtersApplyToAdvertisementAndScanResponseTogether() throws {
        let packets = [
            report(.connectableScannableUndirected, flagsAndService), report(.scanResponse, name),
            report(.connectableScannableUndirected, [0x02, 0x01, 0x06], from: DeviceAddress(2, isRandom: false)),
        ]
        #expect(try scan(ScanOptions(serviceUUIDs: ["180D"]), packets).map(\.address) == [address, address])
        #expect(try scan(ScanOptions(serviceUUIDs: ["180F"]), packets).isEmpty)
        #expect(try scan(ScanOptions(name: "tes"), packets).map(\.address) == [address])
        #expect(try scan(ScanOptions(serviceUUIDs: ["180D"], name: "other"), packets).isEmpty)
    }

    @Test("An event with two reports causes two advertisements")
    func eventWithTwoReportsCausesTwoAdvertisements() throws {
        let packet: [UInt8] = [
            0x04, 0x3E, 0x1A, 0x02, 0x02,
            0x00, 0x01, 0x01, 0x00, 0x00, 0xEE, 0xFF, 0xC0, 0x03, 0x02, 0x01, 0x06, 0xC0,
            0x03, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xB0,
        ]
        var whole = packet
        whole[2] = UInt8(packet.count - 3)
        let found = try scan(ScanOptions(), [whole])
        #expect(found.map(\.rssi) == [-64, -80])
        #expect(found.map(\.isConnectable) == [true, false])
    }

    @Test func advertisementHasThePHYsAndTheKindOfTheLastPDU() throws {
        let legacy = LEExtendedAdvertisingReport.EventType([.connectable, .scannable, .legacyPDU])
        let coded = extendedReport([], primaryPHY: .leCoded, secondaryPHY: .le2M, advertisingSID: 3)
        let found = try scan(ScanOptions(reportsDuplicates: true), [extendedReport(legacy), coded])
        #expect(found.map(\.isLegacy) == [true, false])
        #expect(found.map(\.primaryPHY) == [.le1M, .leCoded])
        #expect(found.map(\.secondaryPHY) == [.none, .le2M])
        #expect(found.map(\.advertisingSetIdentifier) == [nil, 3])
    }

    @Test("Two scans share the controller with the most demanding parameters, until the last ends")
    func sharedScanHasTheMostDemandingParameters() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        let passive = try fixture.run { await host.startScan(ScanOptions(isActive: false)) { _ in } }
        fixture.loop.run(for: .milliseconds(5))
        #expect(fixture.controller.commands.first?.decode(LESetScanParameters.self)?.leScanType == .passive)
        let active = try fixture.run { await host.startScan(ScanOptions()) { _ in } }
        fixture.loop.run(for: .milliseconds(5))
        #expect(
            fixture.controller.commands.last { $0.opcode == LESetScanParameters.opcode }?
                .decode(LESetScanParameters.self)?.leScanType == .active
        )
        try fixture.run { await host.stopScan(active) }
        fixture.loop.run(for: .milliseconds(5))
        #expect(fixture.controller.commands.last?.decode(LESetScanEnable.self)?.leScanEnable == true)
        try fixture.run { await host.stopScan(passive) }
        fixture.loop.run(for: .milliseconds(5))
        #expect(fixture.controller.commands.last?.decode(LESetScanEnable.self)?.leScanEnable == false)
    }
}

@Suite("Connecting")
struct ConnectTests {
    @Test("An attempt to connect ends at its timeout, and the controller stops initiating")
    func attemptEndsAtItsTimeoutAndInitiatingStops() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.controller.override = { [controller = fixture.controller] command in
            guard command.opcode == LECreateConnectionCancel.opcode else { return nil }
            controller.emit(failure(.unknownConnectionIdentifier))
            return nil
        }
        let host = fixture.host
        let start = fixture.loop.now
        #expect(throws: HostError.timedOut) {
            try fixture.run {
                try await host.connect(toAnyOf: [address], parameters: ConnectionParameters(), timeout: .seconds(5))
            }
        }
        #expect(fixture.loop.now - start == .seconds(5))
        fixture.loop.run(for: .milliseconds(5))
        #expect(fixture.controller.opcodes.last == LECreateConnectionCancel.opcode)
        // A second attempt starts from the beginning.
        fixture.controller.forgetCommands()
        _ = fixture.start {
            try await host.connect(toAnyOf: [address], parameters: ConnectionParameters(), timeout: nil)
        }
        #expect(fixture.controller.opcodes.last == LECreateConnection.opcode)
    }

    @Test("Attempts for several peers use the filter accept list; each ends with its own peer")
    func attemptsForSeveralPeersUseTheFilterAcceptList() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let other = DeviceAddress(0xC0FF_EE00_0002, isRandom: true)
        fixture.controller.override = { [controller = fixture.controller] command in
            guard command.opcode == LECreateConnectionCancel.opcode else { return nil }
            controller.emit(failure(.unknownConnectionIdentifier))
            return nil
        }
        let host = fixture.host
        let first = fixture.start {
            try await host.connect(toAnyOf: [address], parameters: ConnectionParameters(), timeout: nil)
        }
        let second = fixture.start {
            try await host.connect(toAnyOf: [other], parameters: ConnectionParameters(), timeout: nil)
        }
        fixture.loop.run(for: .milliseconds(5))
        let listed = fixture.controller.commands.compactMap { $0.decode(LEAddDeviceToFilterAcceptList.self) }
        #expect(Set(listed.map(\.address)) == [PeerAddress(address), PeerAddress(other)])
        #expect(
            fixture.controller.commands.last?.decode(LECreateConnection.self)?.initiatorFilterPolicy
                == .filterAcceptList
        )
        fixture.connect(0x0041, role: .central, peer: other)
        #expect(second.all.count == 1 && first.all.isEmpty)
        #expect(
            fixture.controller.commands.compactMap { $0.decode(LECreateConnection.self) }.last?.peerAddress
                == PeerAddress(address)
        )
    }

    @Test("A link that the peer initiated fulfils attempts, earlier and later ones")
    func linkInitiatedByThePeerFulfilsAttempts() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        let waiting = fixture.start {
            try await host.connect(toAnyOf: [address], parameters: ConnectionParameters(), timeout: nil)
        }
        fixture.controller.forgetCommands()
        fixture.connect(role: .peripheral, peer: address)
        #expect(waiting.all.count == 1 && fixture.controller.opcodes.contains(LECreateConnectionCancel.opcode))
        fixture.controller.forgetCommands()
        let again = try fixture.run {
            try await host.connect(toAnyOf: [address], parameters: ConnectionParameters(), timeout: nil)
        }
        #expect(try waiting.all.first?.get() == again && fixture.controller.commands.isEmpty)
    }

    @Test("A refused command is the error of the attempt")
    func refusedCommandIsTheErrorOfTheAttempt() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.controller.override = { command in
            command.opcode == LECreateConnection.opcode
                ? ScriptedController.status(command.opcode, .connectionLimitExceeded) : nil
        }
        let host = fixture.host
        #expect(throws: HostError.command(.status(.connectionLimitExceeded, LECreateConnection.opcode))) {
            try fixture.run {
                try await host.connect(toAnyOf: [address], parameters: ConnectionParameters(), timeout: nil)
            }
        }
    }
}

private func failure(_ status: HCIErrorCode) -> [UInt8] {
    ScriptedController.packet {
        LEConnectionComplete(
            status: status,
            connectionHandle: 0,
            role: .central,
            peerAddress: PeerAddress(type: .public, value: 0),
            connectionInterval: 0,
            peripheralLatency: 0,
            supervisionTimeout: 0
        ).encodePacket(into: &$0)
    }
}

@Suite("Advertising")
struct AdvertisingTests {
    @Test("Legacy and extended commands are never mixed", arguments: [false, true])
    func legacyAndExtendedCommandsAreNeverMixed(usesExtendedCommands: Bool) throws {
        let fixture = HostFixture(profile: .init(usesExtendedCommands: usesExtendedCommands))
        try fixture.bringUp()
        let host = fixture.host
        let data = AdvertisingData([.flags(.generalDiscoverable), .completeLocalName("Test")])
        let advertisement = try fixture.run {
            _ = await host.startScan(ScanOptions()) { _ in }
            return try await host.startAdvertising(AdvertisementConfiguration(advertisingData: data))
        }
        fixture.loop.run(for: .milliseconds(5))
        try fixture.run { await host.stopAdvertising(advertisement) }
        let extended = fixture.controller.opcodes.contains { (0x2035...0x2043).contains($0.rawValue) }
        let legacy = fixture.controller.opcodes.contains { (0x2006...0x200E).contains($0.rawValue) }
        #expect(extended == usesExtendedCommands && legacy == !usesExtendedCommands)
    }

    @Test("Long data is sent to the controller in fragments of 251 bytes")
    func longDataIsSentInFragmentsOf251Bytes() throws {
        let fixture = HostFixture(profile: .init(usesExtendedCommands: true))
        try fixture.bringUp()
        let host = fixture.host
        let long = AdvertisingData(
            (0..<3).map {
                .manufacturerData(CompanyIdentifier(rawValue: 0xFFFF), Array(repeating: UInt8($0), count: 200))
            }
        )
        try fixture.run {
            _ = try await host.startAdvertising(
                AdvertisementConfiguration(isConnectable: false, isScannable: false, advertisingData: long)
            )
        }
        let pieces = fixture.controller.commands.compactMap { $0.decode(LESetExtendedAdvertisingData.self) }
        #expect(pieces.map(\.operation) == [.firstFragment, .intermediateFragment, .lastFragment])
        #expect(pieces.flatMap { $0.advertisingData.bytes } == long.bytes)
    }

    @Test("Advertising continues after the connection that it led to")
    func advertisingContinuesAfterItsConnection() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        try fixture.run { _ = try await host.startAdvertising(AdvertisementConfiguration()) }
        fixture.controller.forgetCommands()
        fixture.connect()
        #expect(fixture.controller.commands.last?.decode(LESetAdvertisingEnable.self)?.advertisingEnable == true)
    }

    @Test("An advertisement that is blocked by a connection starts after the connection's end")
    func blockedAdvertisementStartsAfterTheEndOfTheConnection() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        try fixture.run { _ = try await host.startAdvertising(AdvertisementConfiguration()) }
        fixture.controller.override = { command in
            command.opcode == LESetAdvertisingEnable.opcode
                ? ScriptedController.complete(LESetAdvertisingEnable.self, .failure(.connectionLimitExceeded)) : nil
        }
        fixture.connect()
        fixture.controller.override = { _ in nil }
        fixture.controller.forgetCommands()
        fixture.controller.emit {
            DisconnectionComplete(connectionHandle: 0x0040, reason: .remoteUserTerminatedConnection)
                .encodePacket(into: &$0)
        }
        fixture.loop.run(for: .milliseconds(5))
        #expect(fixture.controller.opcodes == [LESetAdvertisingEnable.opcode])
    }

    @Test("Impossible parameters fail with an explanation")
    func impossibleParametersFail() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        let long = AdvertisingData([.completeLocalName(String(repeating: "x", count: 30))])
        for configuration in [
            AdvertisementConfiguration(advertisingData: long),
            AdvertisementConfiguration(advertisingData: long, usesExtendedPDUs: false),
            AdvertisementConfiguration(scanResponseData: long, usesExtendedPDUs: false),
            AdvertisementConfiguration(interval: .milliseconds(10)),
            AdvertisementConfiguration(address: DeviceAddress(1, isRandom: true)),
        ] {
            #expect {
                try fixture.run { _ = try await host.startAdvertising(configuration) }
            } throws: { error in
                if case .invalidArgument? = error as? HostError { true } else { false }
            }
        }
        try fixture.run { _ = try await host.startAdvertising(AdvertisementConfiguration()) }
        #expect {
            try fixture.run { _ = try await host.startAdvertising(AdvertisementConfiguration()) }
        } throws: { error in
            if case .limitReached? = error as? HostError { true } else { false }
        }
    }
}
