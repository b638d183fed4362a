import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

private typealias Fixture = AdvertisingPlanFixture

@Suite("PHYs and coding in the plan for advertising")
struct AdvertisingPlanCodingTests {
    /// A controller with the LE Coded PHY and, unless the test says otherwise, Advertising Coding Selection.
    private static func fixture(selectsCoding: Bool = true) -> Fixture {
        var fixture = Fixture()
        fixture.context.information.features.insert([.leCodedPHY, .le2MPHY])
        guard selectsCoding else { return fixture }
        fixture.context.information.enabledHostFeatures = .advertisingCodingSelectionHostSupport
        fixture.context.information.commands.insert(LESetExtendedAdvertisingParametersV2.self)
        return fixture
    }

    private static func configuration(_ phys: AdvertisingPHYs, _ extended: Bool? = nil) -> AdvertisementConfiguration {
        AdvertisementConfiguration(isConnectable: false, isScannable: false, usesExtendedPDUs: extended, phys: phys)
    }

    @Test func preferredCodingIsSentWithTheSecondVersion() throws {
        var fixture = Self.fixture()
        try fixture.start(
            Self.configuration(
                AdvertisingPHYs(
                    primary: .leCoded,
                    secondary: .leCoded,
                    primaryCoding: .requireS8Coding,
                    secondaryCoding: .preferS2Coding
                )
            )
        )
        let command = try fixture.requireNext().command
        #expect(
            command.hexadecimal == "7f201b" + "000000" + "a00000a00000" + "07" + "00" + "00000000000000" + "00" + "7f"
                + "03" + "00" + "03" + "00" + "00" + "0401"
        )
    }

    @Test func physWithoutACodingAreSentWithTheFirstVersion() throws {
        var fixture = Self.fixture(selectsCoding: false)
        try fixture.start(Self.configuration(AdvertisingPHYs(primary: .leCoded, secondary: .le2M)))
        let command = try fixture.requireNext().command.decode(LESetExtendedAdvertisingParameters.self)
        #expect(command?.primaryAdvertisingPHY == .leCoded && command?.secondaryAdvertisingPHY == .le2M)
        #expect(command?.advertisingEventProperties == [])
    }

    @Test(
        arguments: [
            configuration(AdvertisingPHYs(primary: .le2M)), configuration(AdvertisingPHYs(secondary: .none)),
            configuration(AdvertisingPHYs(primaryCoding: .preferS2Coding)),
            configuration(AdvertisingPHYs(secondary: .le2M, secondaryCoding: .preferS2Coding)),
            configuration(.coded(AdvertisingPHYOptions(rawValue: 5))), configuration(.coded(), false),
        ]
    )
    func contradictionIsInvalid(configuration: AdvertisementConfiguration) {
        var fixture = Self.fixture()
        do throws(HostError) {
            try fixture.start(configuration)
            Issue.record("it was accepted")
        } catch {
            guard case .invalidArgument = error else {
                Issue.record("\(error)")
                return
            }
        }
    }

    @Test func missingFeaturesAreNotSupported() {
        var withoutSelection = Self.fixture(selectsCoding: false)
        #expect(
            throws: HostError.notSupported(
                "the coding of advertising needs a controller with Advertising Coding Selection, and usesAdvertisingCoding"
            )
        ) { try withoutSelection.start(Self.configuration(.coded(.preferS8Coding))) }
        var withoutCoded = Fixture()
        #expect(throws: HostError.notSupported("this controller has no LE Coded PHY")) {
            try withoutCoded.start(Self.configuration(.coded()))
        }
        var legacy = Fixture(isExtended: false)
        legacy.context.information.features.insert(.leCodedPHY)
        #expect(throws: HostError.notSupported("this controller does not advertise with extended PDUs")) {
            try legacy.start(Self.configuration(.coded()))
        }
    }
}
