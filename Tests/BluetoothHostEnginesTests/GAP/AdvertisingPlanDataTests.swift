import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

private typealias Fixture = AdvertisingPlanFixture

@Suite("The length of the data of advertisements")
struct AdvertisingPlanDataTests {
    @Test(
        "The data of a connectable advertisement with extended PDUs must fit one PDU",
        arguments: [(nil, 245), (GAPSample.address(2), 239)] as [(DeviceAddress?, Int)]
    )
    func connectableDataMustFitOnePDU(peer: DeviceAddress?, room: Int) throws {
        var fixture = Fixture()
        func configuration(_ count: Int) -> AdvertisementConfiguration {
            AdvertisementConfiguration(
                advertisingData: AdvertisingData(decoding: [UInt8](repeating: 0, count: count - 40)),
                scanResponseData: AdvertisingData(decoding: [UInt8](repeating: 0, count: 40)),
                peer: peer,
                usesExtendedPDUs: true
            )
        }
        let error = HostError.invalidArgument(
            "advertising data has \(room + 1) bytes; connectable extended PDUs have room for \(room); "
                + "shorten the data, or advertise it in a set that is not connectable"
        )
        #expect(throws: error) { try fixture.start(configuration(room + 1)) }
        try fixture.start(configuration(room))
        let commands = fixture.settle()
        #expect(commands.last == Fixture.enable(0))
    }
}
