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
            content: AdvertisedContent(AdvertisingData(structures)),
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

    @Test("The first whole manufacturer data is used: a company identifier has two bytes")
    func firstWholeManufacturerDataIsUsed() {
        let bytes: [UInt8] = [2, 0xFF, 0x4C, 3, 0xFF, 0x59, 0x00, 4, 0xFF, 0x4C, 0x00, 0x01]
        let discovery = Discovery(
            identifier: UUID(),
            name: nil,
            content: AdvertisedContent(AdvertisingData(decoding: bytes)),
            isConnectable: true,
            rssi: nil,
            time: 0
        )
        #expect(discovery.dictionary[CBAdvertisementDataManufacturerDataKey] as? Data == Data([0x59, 0x00]))
    }

    @Test("Each RSSI has its number, 127 if it is not known")
    func eachRSSIHasItsNumber() {
        for rssi in [-1000, -129, -128, -40, 0, 20, 127, 128, 1000] {
            #expect(Discovery.number(ofRSSI: rssi).intValue == rssi)
        }
        #expect(Discovery.number(ofRSSI: nil) == 127)
    }

    @Test("UUIDs of 16 bits that were heard share objects, at most 1024; each has its value and width")
    func heardUUIDsShareObjects() {
        #expect(CBUUID.shared("180D") === CBUUID.shared("180D"))
        #expect(CBUUID.shared("180D").value == "180D")
        #expect(CBUUID.shared(Self.long).value == Self.long)
        let wide: BluetoothUUID = "0000180D-0000-1000-8000-00805F9B34FB"
        #expect(CBUUID.shared(wide).data.count == 16)
        let shared = (UInt16.min...UInt16.max).count { number in
            let uuid = BluetoothUUID(number)
            return CBUUID.shared(uuid).value == uuid && CBUUID.shared(uuid) === CBUUID.shared(uuid)
        }
        #expect(shared <= 1024)
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
