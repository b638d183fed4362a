import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Coding of advertising of software controllers")
struct AdvertisingCodingTests {
    private static let hostFeature = LESetHostFeature(bitNumber: 41, bitValue: true)

    private static func parameters(
        _ primary: AdvertisingPHYOptions,
        _ secondary: AdvertisingPHYOptions
    ) -> LESetExtendedAdvertisingParametersV2 {
        LESetExtendedAdvertisingParametersV2(
            advertisingHandle: 3,
            primaryAdvertisingIntervalMin: 160,
            primaryAdvertisingIntervalMax: 160,
            primaryAdvertisingPHY: .leCoded,
            secondaryAdvertisingPHY: .leCoded,
            primaryAdvertisingPHYOptions: primary,
            secondaryAdvertisingPHYOptions: secondary
        )
    }

    /// The PHYs of the first report of a scanner on LE Coded.
    private static func reportedPHYs(
        _ parameters: LESetExtendedAdvertisingParametersV2,
        distinguishes: Bool
    ) -> [PHY]? {
        let world = World(count: 2)
        if distinguishes { world.succeed(hostFeature, at: 1) }
        world.succeed(
            LESetExtendedScanParameters(leCoded: .init(scanType: .passive)),
            LESetExtendedScanEnable(enable: true),
            at: 1
        )
        world.succeed(parameters, ExtendedAdvertisingTests.enable, at: 0)
        world.run(.seconds(1))
        return world.extendedReports(at: 1).first?.phys
    }

    @Test(
        arguments: [
            (.requireS2Coding, .requireS8Coding, [.leCodedS2, .leCoded]),
            (.preferS8Coding, .preferS2Coding, [.leCoded, .leCodedS2]),
            (.noPreference, .noPreference, [.leCoded, .leCoded]),
        ] as [(AdvertisingPHYOptions, AdvertisingPHYOptions, [PHY])]
    )
    func codingIsReportedToAHostThatDistinguishesIt(
        primary: AdvertisingPHYOptions,
        secondary: AdvertisingPHYOptions,
        expected: [PHY]
    ) {
        let parameters = Self.parameters(primary, secondary)
        #expect(Self.reportedPHYs(parameters, distinguishes: true) == expected)
        #expect(Self.reportedPHYs(parameters, distinguishes: false) == [.leCoded, .leCoded])
    }

    @Test func reservedOptionsAreInvalid() {
        let world = World(count: 1)
        let reserved = AdvertisingPHYOptions(rawValue: 5)
        #expect(world.status(of: Self.parameters(reserved, .noPreference), to: 0) == .invalidHCICommandParameters)
        #expect(world.status(of: Self.parameters(.noPreference, reserved), to: 0) == .invalidHCICommandParameters)
    }

    @Test func controllerWithoutTheFeatureDoesNotKnowTheCommand() {
        let world = World(count: 1) { $0.features.remove(.advertisingCodingSelection) }
        let parameters = Self.parameters(.preferS2Coding, .preferS2Coding)
        #expect(world.status(of: parameters, to: 0) == .unknownHCICommand)
    }

    @Test func codingS2ReachesLessFarThanS8() {
        func isReceived(_ options: AdvertisingPHYOptions, at metres: Double) -> Bool {
            let world = World(count: 2) {
                $0.position = Position(x: $0.address == World.address(0) ? 0 : metres, y: 0)
            }
            world.succeed(
                LESetExtendedScanParameters(leCoded: .init(scanType: .passive)),
                LESetExtendedScanEnable(enable: true),
                at: 1
            )
            world.succeed(Self.parameters(options, options), ExtendedAdvertisingTests.enable, at: 0)
            world.run(.seconds(1))
            return !world.extendedReports(at: 1).isEmpty
        }
        // 0 dBm less 40 dB and 60 dB: S=2 is received down to -100 dBm, S=8 down to -103 dBm.
        #expect(isReceived(.requireS2Coding, at: 1000) && isReceived(.requireS8Coding, at: 1000))
        #expect(!isReceived(.requireS2Coding, at: 1200) && isReceived(.requireS8Coding, at: 1200))
    }
}
