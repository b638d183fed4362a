import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Transmit powers and path loss of links of software controllers")
struct PowerControlTests {
    private static let handle = LinkWorld.handle
    private static let reportAll = LESetTransmitPowerReportingEnable(
        connectionHandle: handle,
        localEnable: true,
        remoteEnable: true
    )

    /// Two controllers, a metre apart, that send with -20 to 4 dBm.
    private static func linked(_ configure: (inout VirtualController.Configuration) -> Void = { _ in }) -> LinkWorld {
        LinkWorld(supervisionTimeout: 400) { configuration in
            configuration = VirtualController.Configuration(
                address: configuration.address,
                transmitPower: 4,
                minimumTransmitPower: -20,
                position: Position(x: configuration.address == World.address(0) ? 0 : 3, y: 0)
            )
            configure(&configuration)
        }
    }

    private func report(
        _ reason: UInt8,
        _ level: Int8,
        limits: UInt8 = 0,
        delta: Int8 = 0,
        phy: UInt8 = 1,
        status: UInt8 = 0
    ) -> [UInt8] {
        [
            0x04, 0x3E, 0x09, 0x21, status, 0x40, 0x00, reason, phy, UInt8(bitPattern: level), limits,
            UInt8(bitPattern: delta),
        ]
    }

    private func powerReports(_ link: LinkWorld, _ index: Int) -> [[UInt8]] {
        link.told(index).filter { $0.count > 3 && $0[3] == 0x21 }
    }

    // MARK: Transmit power

    @Test func ownPowerIsRead() {
        let link = Self.linked()
        let read = LEEnhancedReadTransmitPowerLevel(connectionHandle: Self.handle, phy: .le1M)
        #expect(
            link.world.send(read, to: 0) == [[0x04, 0x0E, 0x09, 0x01, 0x76, 0x20, 0x00, 0x40, 0x00, 0x01, 4, 4]]
        )
        #expect(link.world.send(LEReadTransmitPower(), to: 0).first?.suffix(2) == [UInt8(bitPattern: -20), 4])
        let unknown = LEEnhancedReadTransmitPowerLevel(connectionHandle: Self.handle, phy: PHY(rawValue: 5))
        #expect(link.world.status(of: unknown, to: 0) == .unsupportedFeatureOrParameterValue)
    }

    @Test func currentAndMaximumPowersAreRead() {
        let link = Self.linked()
        link.central.setTransmitPower(-4)
        func read(_ type: TransmitPowerLevelType) -> UInt8? {
            link.world.send(ReadTransmitPowerLevel(connectionHandle: Self.handle, type: type), to: 0).first?.last
        }
        #expect(read(.current) == UInt8(bitPattern: -4))
        #expect(read(.maximum) == 4)
    }

    @Test func powerOfThePeerIsRead() {
        let link = Self.linked()
        let read = LEReadRemoteTransmitPowerLevel(connectionHandle: Self.handle, phy: .le1M)
        #expect(link.world.send(read, to: 1) == [[0x04, 0x0F, 0x04, 0x00, 0x01, 0x77, 0x20]])
        link.run(.milliseconds(200))
        #expect(link.told(1).last == report(2, 4, limits: 0b10))
        #expect(link.told(0).isEmpty)
    }

    @Test func peerWithoutPowerControlIsReported() {
        let link = Self.linked { if $0.address == World.address(0) { $0.features.remove(.powerControlRequest) } }
        let read = LEReadRemoteTransmitPowerLevel(connectionHandle: Self.handle, phy: .le1M)
        link.world.send(read, to: 1)
        link.run(.milliseconds(200))
        #expect(link.told(1).last == report(2, 127, delta: 127, status: 0x1A))
        #expect(link.world.status(of: read, to: 0) == .unknownHCICommand)
    }

    @Test func changeIsReportedAtBothEnds() {
        let link = Self.linked()
        link.world.succeed(Self.reportAll, at: 0)
        link.world.succeed(Self.reportAll, at: 1)
        link.run(.milliseconds(200))
        link.world.forget()
        link.central.setTransmitPower(-4)
        link.run(.milliseconds(200))
        #expect(powerReports(link, 0) == [report(0, -4, delta: -8)])
        #expect(powerReports(link, 1) == [report(1, -4, delta: -8)])
        link.world.forget()
        link.central.setTransmitPower(-100)
        link.run(.milliseconds(60))
        #expect(powerReports(link, 0).first == report(0, -20, limits: 0b01, delta: -16))
    }

    @Test("A power below the minimum of the configuration is the minimum too")
    func powerBelowTheMinimumIsTheMinimumToo() {
        let link = Self.linked { $0.transmitPower = -30 }
        let level = UInt8(bitPattern: -30)
        #expect(link.world.send(LEReadTransmitPower(), to: 0).first?.suffix(2) == [level, level])
        link.central.setTransmitPower(-40)
        link.central.setTransmitPower(4)
        #expect(link.central.end(Self.handle)?.power.power == -30)
    }

    @Test("Changes that wait for another procedure are reported as one")
    func changesThatWaitAreReportedAsOne() {
        let link = Self.linked()
        link.world.succeed(Self.reportAll, at: 0)
        link.run(.milliseconds(200))
        link.world.forget()
        link.peripheral.end(Self.handle)?.begin(.ping)
        link.peripheral.setTransmitPower(-4)
        link.peripheral.setTransmitPower(-8)
        link.run(.milliseconds(300))
        #expect(powerReports(link, 0) == [report(1, -8, delta: -12)])
    }

    @Test func changeIsNotReportedToAHostThatDoesNotWantIt() {
        let link = Self.linked()
        link.central.setTransmitPower(-4)
        link.run(.seconds(1))
        #expect(link.told(0).isEmpty && link.told(1).isEmpty)
    }

    @Test func strongPeerIsAskedForLessPower() {
        let link = Self.linked()
        link.world.succeed(Self.reportAll, at: 0)
        link.run(.milliseconds(500))
        link.world.forget()
        // A tenth of a metre: 20 dB of loss. The signal of 4 dBm is 24 dB above the strength that is wanted at most.
        link.peripheral.position = Position(x: 0.1, y: 0)
        link.run(.seconds(1))
        #expect(powerReports(link, 0) == [report(1, -20, limits: 0b01, delta: -24)])
        // Far away, it sends with more power again.
        link.world.forget()
        link.peripheral.position = Position(x: 200, y: 0)
        link.run(.seconds(1))
        #expect(powerReports(link, 0).last == report(1, 4, limits: 0b10, delta: 24))
    }

    @Test func linkOfHostsThatWantNoReportsExchangesNoPackets() {
        let link = Self.linked()
        let actions = link.air.counts.actions
        link.peripheral.position = Position(x: 0.1, y: 0)
        #expect(link.air.counts.actions == actions)
    }

    // MARK: Path loss

    private static let thresholds = LESetPathLossReportingParameters(
        connectionHandle: handle,
        highThreshold: 70,
        highHysteresis: 2,
        lowThreshold: 50,
        lowHysteresis: 2,
        minTimeSpent: 10
    )

    private static let reportPathLoss = LESetPathLossReportingEnable(connectionHandle: handle, enable: true)

    private func zones(_ link: LinkWorld, _ index: Int) -> [[UInt8]] {
        link.told(index).filter { $0.count > 3 && $0[3] == 0x20 }.map { Array($0.suffix(2)) }
    }

    @Test func zonesFollowTheDistance() {
        let link = Self.linked()
        link.world.succeed(Self.thresholds, Self.reportPathLoss, at: 0)
        link.run(.seconds(1))
        // 3 m: 40 dB and 9.5 dB.
        #expect(zones(link, 0) == [[50, 1]])
        link.peripheral.position = Position(x: 100, y: 0)
        link.run(.milliseconds(290))
        #expect(zones(link, 0).count == 1, "not ten events yet")
        link.run(.seconds(1))
        #expect(zones(link, 0).last == [80, 2])
        link.peripheral.position = Position(x: 1, y: 0)
        link.run(.seconds(1))
        #expect(zones(link, 0).last == [40, 0])
        // Within the hysteresis of the low threshold.
        link.peripheral.position = Position(x: 3.5, y: 0)
        link.run(.seconds(1))
        #expect(zones(link, 0).count == 3)
        link.world.succeed(LESetPathLossReportingEnable(connectionHandle: Self.handle, enable: false), at: 0)
        link.peripheral.position = Position(x: 100, y: 0)
        link.run(.seconds(1))
        #expect(zones(link, 0).count == 3)
    }

    @Test func briefChangeOfZoneIsNotReported() {
        let link = Self.linked()
        link.world.succeed(Self.thresholds, Self.reportPathLoss, at: 0)
        link.run(.seconds(1))
        link.peripheral.position = Position(x: 100, y: 0)
        link.run(.milliseconds(150))
        link.peripheral.position = Position(x: 3, y: 0)
        link.run(.seconds(1))
        #expect(zones(link, 0) == [[50, 1]])
    }

    @Test func pathLossDoesNotDependOnThePower() {
        let link = Self.linked()
        link.world.succeed(Self.thresholds, Self.reportPathLoss, at: 0)
        link.run(.seconds(1))
        link.peripheral.setTransmitPower(-10)
        link.run(.seconds(1))
        #expect(zones(link, 0) == [[50, 1]])
    }

    @Test func thresholdsAreInOrderAndSetFirst() {
        let link = Self.linked()
        let enable = LESetPathLossReportingEnable(connectionHandle: Self.handle, enable: true)
        #expect(link.world.status(of: enable, to: 0) == .commandDisallowed)
        var overlapping = Self.thresholds
        overlapping.lowThreshold = 67
        #expect(link.world.status(of: overlapping, to: 0) == .invalidHCICommandParameters)
        var negative = Self.thresholds
        negative.lowHysteresis = 51
        #expect(link.world.status(of: negative, to: 0) == .invalidHCICommandParameters)
        var unbounded = Self.thresholds
        unbounded.highThreshold = 0xFF
        unbounded.highHysteresis = 99
        #expect(link.world.status(of: unbounded, to: 0) == .success)
    }

    // MARK: Coding

    @Test func codingChangesTheAirTime() throws {
        func time(_ options: PHYOptions) throws -> Duration {
            let link = Self.linked()
            link.world.send(
                LESetPHY(connectionHandle: Self.handle, txPHYs: .leCoded, rxPHYs: .leCoded, phyOptions: options),
                to: 0
            )
            link.run(.seconds(2))
            #expect(link.told(0).last == [0x04, 0x3E, 0x06, 0x0C, 0x00, 0x40, 0x00, 3, 3])
            let before = link.received(1).count
            link.send(.init(0, count: 27), from: 0)
            var sent: Duration = .zero
            sent = try #require(link.run { link.received(1).count > before })
            return sent
        }
        // 27 bytes and the header: 2,048 us in S=8, 590 us less the terminator in S=2.
        let difference = try time(.preferS8Coding) - time(.preferS2Coding)
        let octets = 27
        let expected =
            AirTime.microseconds(byteCount: octets, phy: .leCoded, isEncrypted: false)
            - AirTime.microseconds(byteCount: octets, phy: .leCodedS2, isEncrypted: false)
        #expect(expected == 32 * 48 + 18)
        #expect(difference == .microseconds(expected))
    }
}
