import BluetoothTypes
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("Advertisements")
struct AdvertisementTests {
    private func dictionary(_ structures: [AdvertisingData.Structure], isConnectable: Bool = true) -> [String: Any] {
        Discovery(
            identifier: UUID(),
            name: nil,
            advertisingData: AdvertisingData(structures),
            isConnectable: isConnectable,
            rssi: nil,
            time: 700_000_000
        ).dictionary
    }

    @Test("Missing data has no key, but connectability is always present")
    func missingDataHasNoKeyAndConnectabilityIsAlwaysPresent() {
        let data = dictionary([], isConnectable: false)
        #expect(Set(data.keys) == [CBAdvertisementDataIsConnectable, "kCBAdvDataTimestamp"])
        #expect(data[CBAdvertisementDataIsConnectable] as? Bool == false)
        #expect(data["kCBAdvDataTimestamp"] as? Double == 700_000_000)
    }

    @Test("Each AD structure has its key and type")
    func eachStructureHasItsKeyAndType() throws {
        let data = dictionary([
            .completeLocalName("Polar"), .serviceUUIDs(["180D"], isComplete: false),
            .serviceUUIDs(["908D66AF-2751-4483-BD8E-8E99A92CC2F3"], isComplete: true),
            .solicitedServiceUUIDs(["180F"]), .serviceData("180F", [0x64]), .txPowerLevel(-8),
            .manufacturerData(CompanyIdentifier(rawValue: 0x004C), [0x02, 0x15]),
        ])
        #expect(data[CBAdvertisementDataLocalNameKey] as? String == "Polar")
        #expect(
            data[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID] == [
                CBUUID(string: "180D"), CBUUID(string: "908D66AF-2751-4483-BD8E-8E99A92CC2F3"),
            ]
        )
        #expect(data[CBAdvertisementDataSolicitedServiceUUIDsKey] as? [CBUUID] == [CBUUID(string: "180F")])
        #expect(
            data[CBAdvertisementDataServiceDataKey] as? [CBUUID: Data] == [CBUUID(string: "180F"): Data([0x64])]
        )
        #expect((data[CBAdvertisementDataTxPowerLevelKey] as? NSNumber)?.intValue == -8)
        #expect(data[CBAdvertisementDataTxPowerLevelKey] as? Int == -8)
        #expect(data[CBAdvertisementDataManufacturerDataKey] as? Data == Data([0x4C, 0x00, 0x02, 0x15]))
        #expect((data[CBAdvertisementDataManufacturerDataKey] as? NSData)?.length == 4)
        #expect(data[CBAdvertisementDataIsConnectable] as? NSNumber == NSNumber(value: true))
    }

    // MARK: Payloads

    private static let long: BluetoothUUID = "908D66AF-2751-4483-BD8E-8E99A92CC2F3"
    private static let other: BluetoothUUID = "70DE0751-1127-456C-AB03-D00E202E3754"

    @Test("A name and a service fit into the advertising data")
    func nameAndServiceFitIntoTheAdvertisingData() {
        let payload = AdvertisementPayload(localName: "TiTan", services: ["180D"])
        #expect(
            payload.advertisingData
                == AdvertisingData([
                    .flags([.generalDiscoverable, .brEdrNotSupported]), .serviceUUIDs(["180D"], isComplete: true),
                    .completeLocalName("TiTan"),
                ])
        )
        #expect(payload.scanResponseData.length == 0)
    }

    @Test("A name and a 128-bit service: the name is in the scan response, shortened if too long")
    func nameBesideALongServiceIsInTheScanResponse() {
        let payload = AdvertisementPayload(localName: "Peripheral Device", services: [Self.long])
        #expect(payload.advertisingData.serviceUUIDs == [Self.long])
        #expect(payload.advertisingData.localName == nil)
        #expect(payload.scanResponseData == AdvertisingData([.completeLocalName("Peripheral Device")]))
        let longName = String(repeating: "é", count: 40)
        let shortened = AdvertisementPayload(localName: longName, services: [Self.long])
        #expect(shortened.scanResponseData == AdvertisingData([.shortenedLocalName(String(longName.prefix(14)))]))
    }

    @Test("Services without room go into the scan response, then are omitted; the list types say so")
    func servicesWithoutRoomGoIntoTheScanResponseOrAreOmitted() {
        let third: BluetoothUUID = "B53D35B6-ADA0-42F7-8A75-C4433D81E729"
        let payload = AdvertisementPayload(localName: nil, services: [Self.long, Self.other, third, "180D"])
        #expect(
            payload.advertisingData
                == AdvertisingData([
                    .flags([.generalDiscoverable, .brEdrNotSupported]), .serviceUUIDs(["180D"], isComplete: true),
                    .serviceUUIDs([Self.long], isComplete: false),
                ])
        )
        #expect(payload.scanResponseData == AdvertisingData([.serviceUUIDs([Self.other], isComplete: false)]))
        #expect(payload.omittedServices == [third])
    }

    @Test("No payload is longer than a legacy PDU", arguments: 0...40)
    func noPayloadIsLongerThanALegacyPDU(count: Int) {
        let services = (0..<count).map { BluetoothUUID(UInt16(0x1800 + $0)) } + [Self.long]
        let payload = AdvertisementPayload(localName: String(repeating: "n", count: count), services: services)
        #expect(payload.advertisingData.length <= 31)
        #expect(payload.scanResponseData.length <= 31)
        let sent = payload.advertisingData.serviceUUIDs + payload.scanResponseData.serviceUUIDs
        #expect(Set(sent + payload.omittedServices) == Set(services))
        #expect(sent.count + payload.omittedServices.count == services.count)
    }
}
