import BluetoothTypes
import Testing

@Suite("Names of assigned numbers")
struct NameTests {
    @Test(
        "UUIDs of every table have their names",
        arguments: [
            (0x0003, "RFCOMM"), (0x180D, "Heart Rate"), (0x2902, "Client Characteristic Configuration"),
            (0x2A37, "Heart Rate Measurement"), (0xFEAA, "Google (Eddystone)"), (0xFD62, "Google LLC"),
            (0x185A, "Industrial Measurement Device"), (0x185B, "Ranging"), (0x2C14, "RAS Features"),
            (0x2C19, "Ranging Data Overwritten"), (0x2B8C, "CO2 Concentration"), (0xFC39, "Harman International"),
            (0xFCF1, "Google LLC"), (0xFD59, "Samsung Electronics Co., Ltd."), (0xFFFA, "ASTM Remote ID"),
        ] as [(UInt16, String)]
    )
    func uuidsOfEveryTableHaveTheirNames(number: UInt16, name: String) {
        #expect(BluetoothUUID(number).name == name)
        // The same UUID in its 128-bit form.
        #expect(BluetoothUUID("0000\(hexadecimal(number))-0000-1000-8000-00805F9B34FB")?.name == name)
    }

    @Test("An unassigned number has no name")
    func unassignedNumberHasNoName() {
        #expect(BluetoothUUID(0xFC00 as UInt16).name == nil)
        #expect(CompanyIdentifier(rawValue: 0xFFFE).name == nil)
        #expect(Appearance(rawValue: 0xFFC0).name == nil)
    }

    @Test(
        "UUIDs that many devices use without an assignment have no name",
        arguments: 0xFFF0...0xFFF5 as ClosedRange<UInt16>
    )
    func uuidThatManyDevicesUseWithoutAnAssignmentHasNoName(number: UInt16) {
        #expect(BluetoothUUID(number).name == nil)
    }

    @Test("Companies and appearances have their names; a subcategory without one has its category's")
    func subcategoryWithoutANameHasTheNameOfItsCategory() {
        #expect(CompanyIdentifier(rawValue: 0x004C).name == "Apple, Inc.")
        #expect(CompanyIdentifier(rawValue: 0x10AE).name == "Raycon Inc.")
        #expect(Appearance(rawValue: 0x0341).name == "Heart Rate Belt")
        #expect(Appearance(rawValue: 0x0D44).name == "Insulin Pump, patch pump")
        #expect(Appearance(rawValue: 0x1506).name == "Frying Pan")
        #expect(Appearance(rawValue: 0x037F).name == Appearance(rawValue: 0x0340).name)
        #expect(Appearance(rawValue: 0x0340).name != nil)
    }

    private func hexadecimal(_ number: UInt16) -> String {
        let digits = String(number, radix: 16, uppercase: true)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }
}
