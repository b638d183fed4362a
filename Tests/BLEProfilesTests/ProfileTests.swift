import BLEGATT
import BluetoothTypes
import Foundation
import Testing

@testable import BLEProfiles

@Suite("A profile")
struct ProfileTests {
    private func profile(_ text: String) throws -> Profile {
        try Profile(decoding: JSON(parsing: Array(text.utf8)))
    }

    @Test func profileWithEveryKeyIsRead() throws {
        let profile = try profile(
            """
            {"name": "Thermo", "appearance": 768, "address": "f0:12:34:56:78:9a",
             "advertise": {"services": ["1809"], "serviceData": {"FCD2": "400164"},
                           "manufacturerData": {"004C": "0215"}, "connectable": false, "interval": 62.5,
                           "phy": "coded", "coding": "s2", "periodic": {"interval": 7.5, "data": "03FFFFFF"}},
             "services": [
               {"uuid": "1809", "primary": true, "handle": 16, "includes": [1], "characteristics": [
                 {"uuid": "2A1C", "handle": "0x0012", "properties": ["read", "indicate"],
                  "permissions": ["readEncrypted"], "value": "0a0b", "maxLength": 20,
                  "descriptors": [{"uuid": "2901", "handle": 21, "value": {"text": "hot"},
                                   "permissions": ["read", "write"]}]}]},
               {"uuid": "12345678-1234-5678-1234-56789ABCDEF0", "primary": false}]}
            """
        )
        #expect(profile.name == "Thermo")
        #expect(profile.appearance == Appearance(rawValue: 768))
        #expect(profile.address == DeviceAddress(0xF012_3456_789A, isRandom: true))
        #expect(
            profile.advertise
                == Profile.Advertise(
                    services: ["1809"],
                    serviceData: [.init(service: "FCD2", data: [0x40, 0x01, 0x64])],
                    manufacturerData: [.init(company: CompanyIdentifier(rawValue: 0x004C), data: [0x02, 0x15])],
                    isConnectable: false,
                    interval: .microseconds(62500),
                    periodic: Profile.Periodic(interval: .microseconds(7500), data: [3, 0xFF, 0xFF, 0xFF]),
                    phy: .coded,
                    coding: .s2
                )
        )
        #expect(
            profile.services == [
                Profile.Service(
                    uuid: "1809",
                    isPrimary: true,
                    handle: 16,
                    includes: [1],
                    characteristics: [
                        Profile.Characteristic(
                            uuid: "2A1C",
                            handle: 18,
                            properties: [.read, .indicate],
                            permissions: [.readEncrypted],
                            value: [0x0A, 0x0B],
                            maximumLength: 20,
                            descriptors: [
                                Profile.Descriptor(
                                    uuid: "2901",
                                    handle: 21,
                                    value: Array("hot".utf8),
                                    permissions: [.read, .write]
                                )
                            ]
                        )
                    ]
                ),
                Profile.Service(
                    uuid: "12345678-1234-5678-1234-56789ABCDEF0",
                    isPrimary: false,
                    handle: nil,
                    includes: [],
                    characteristics: []
                ),
            ]
        )
    }

    @Test func documentationHasEveryKeyPermissionAndProperty() throws {
        let path = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Docs/Profiles.md")
        let text = try String(contentsOf: path, encoding: .utf8)
        let start = try #require(text.range(of: "```json\n"))
        let end = try #require(text.range(of: "```", range: start.upperBound..<text.endIndex))
        let json = String(text[start.upperBound..<end.lowerBound])
        let documented = try profile(json)
        #expect(documented.services[0].characteristics[0].descriptors[0].permissions == [.read, .writeAuthenticated])
        #expect(documented.advertise.interval == .microseconds(62500))
        try documented.checkHandles()
        let server = Server()
        let standard = try server.publish([
            .genericAccess(
                deviceName: "Thermometer",
                appearance: Appearance(rawValue: 768),
                preferredParameters: (minimum: 12, maximum: 24, latency: 0, timeout: 400),
                supportsAddressResolution: false
            ),
            .genericAttribute,
        ])
        #expect(standard.first?.handle == Profile.standardHandles.lowerBound)
        #expect(standard.last?.endHandle == Profile.standardHandles.upperBound)
        #expect(try server.publish(documented.definitions).map(\.handle) == [24, 41])
        // An error lists the keys that are known; the example has all of them.
        let service = #"{"services": [{"uuid": "181A""#
        let characteristic = service + #", "characteristics": [{"uuid": "2A6E", "properties": []"#
        let wrong = [
            #"{"unknown": 0}"#, #"{"advertise": {"unknown": 0}}"#, service + #", "unknown": 0}]}"#,
            characteristic + #", "unknown": 0}]}]}"#,
            characteristic + #", "descriptors": [{"uuid": "2901", "unknown": 0}]}]}]}"#,
        ]
        for text in wrong {
            let error = #expect(throws: ProfileError.self) { try profile(text) }
            let known = try #require(error?.problem.split(separator: "known are ").last)
            for key in known.split(separator: ", ") { #expect(json.contains("\"\(key)\":"), "\(key)") }
        }
        for permission in AttributePermission.allCases { #expect(text.contains("`\(permission.rawValue)`")) }
        for property in CharacteristicProperty.allCases { #expect(text.contains("`\(property.rawValue)`")) }
    }

    @Test func declaredConfigurationTakesTheSecurityOfItsValue() throws {
        let profile = try profile(
            """
            {"services": [{"uuid": "180F", "characteristics": [
                {"uuid": "2A19", "properties": ["read", "notify"], "permissions": ["readEncrypted", "readAuthorized"],
                 "descriptors": [{"uuid": "2902"}, {"uuid": "2901"}]}]}]}
            """
        )
        let descriptors = try #require(profile.services.first?.characteristics.first?.descriptors)
        #expect(descriptors[0].permissions == [.read, .write, .writeEncrypted, .writeAuthorized])
        #expect(descriptors[1].permissions == [.read])
    }

    @Test func emptyProfileIsValid() throws {
        #expect(try profile("{}") == Profile())
    }

    @Test(
        arguments: [
            (#""read""#, [.read]), (#""notify""#, []), (#""write""#, [.write]), (#""writeWithoutResponse""#, [.write]),
            (#""read","authenticatedSignedWrites""#, [.read, .writeSigned]),
        ] as [(String, Set<AttributePermission>)]
    )
    func permissionsDefaultToThoseOfTheProperties(properties: String, permissions: Set<AttributePermission>) throws {
        let profile = try profile(
            #"{"services": [{"uuid": "180F", "characteristics": [{"uuid": "2A19", "properties": [\#(properties)]}]}]}"#
        )
        #expect(profile.services.first?.characteristics.first?.permissions == permissions)
    }

    /// Each is wrong in one place.
    static let wrong: [(String, String)] = [
        ("[]", "the profile: expected an object, not an array"),
        (#"{"nmae": "x"}"#, "nmae: unknown key; known are name, appearance, address, advertise, services"),
        (#"{"name": 1}"#, "name: expected a string, not a number"),
        (#"{"name": "a", "name": "b"}"#, "name: given twice"),
        (
            #"{"name": "\#(String(repeating: "x", count: 249))"}"#,
            "name: the name has 249 bytes; the maximum is 248"
        ),
        (#"{"appearance": 65536}"#, "appearance: 65536 is out of range; use 0 to 65535"),
        (#"{"appearance": 1.5}"#, "appearance: expected a whole number, not a number"),
        (#"{"address": "F0"}"#, "address: \"F0\" is not an address, as F0:12:34:56:78:9A is"),
        (
            #"{"address": "40:12:34:56:78:9A"}"#,
            "address: \"40:12:34:56:78:9A\" is not a random static address: its first pair must be C0 to FF"
        ),
        (#"{"advertise": null}"#, "advertise: expected an object, not null"),
        (
            #"{"advertise": {"service": []}}"#,
            "advertise.service: unknown key; known are services, serviceData, manufacturerData, connectable, interval, "
                + "periodic, phy, coding"
        ),
        (
            #"{"advertise": {"services": ["180F", "18ZZ"]}}"#,
            "advertise.services[1]: \"18ZZ\" is not a UUID: use 4 or 8 hexadecimal digits, or 32 as 8-4-4-4-12"
        ),
        (
            #"{"advertise": {"serviceData": {"FCD": "40"}}}"#,
            "advertise.serviceData.FCD: \"FCD\" is not a UUID: use 4 or 8 hexadecimal digits, or 32 as 8-4-4-4-12"
        ),
        (
            #"{"advertise": {"manufacturerData": {"4C": ""}}}"#,
            "advertise.manufacturerData.4C: the key is not a company's number: use 4 hexadecimal digits, as in 004C"
        ),
        (
            #"{"advertise": {"manufacturerData": {"+04C": ""}}}"#,
            "advertise.manufacturerData.+04C: the key is not a company's number: use 4 hexadecimal digits, as in 004C"
        ),
        (
            #"{"advertise": {"manufacturerData": {"004C": "0x0G"}}}"#,
            "advertise.manufacturerData.004C: \"0x0G\" is not hexadecimal: \"G\" is no digit"
        ),
        (
            #"{"advertise": {"serviceData": {"FCD2": "\#(String(repeating: "00", count: 253))"}}}"#,
            "advertise.serviceData.FCD2: the data has 253 bytes; the maximum is 252"
        ),
        (
            #"{"advertise": {"serviceData": {"12345678-1234-5678-1234-56789ABCDEF0": "#
                + #""\#(String(repeating: "00", count: 239))"}}}"#,
            "advertise.serviceData.12345678-1234-5678-1234-56789ABCDEF0: the data has 239 bytes; the maximum is 238"
        ),
        (
            #"{"advertise": {"manufacturerData": {"004C": "\#(String(repeating: "00", count: 253))"}}}"#,
            "advertise.manufacturerData.004C: the data has 253 bytes; the maximum is 252"
        ),
        (
            #"{"advertise": {"serviceData": {"FCD2": "40", "0000FCD2": "40"}}}"#,
            "advertise.serviceData.0000FCD2: given twice"
        ),
        (
            #"{"advertise": {"manufacturerData": {"004C": "00", "004c": "00"}}}"#,
            "advertise.manufacturerData.004c: given twice"
        ),
        (#"{"advertise": {"connectable": 1}}"#, "advertise.connectable: expected true or false, not a number"),
        (
            #"{"advertise": {"phy": "2m", "coding": "s2"}}"#,
            "advertise.coding: a coding goes with \"phy\": \"coded\""
        ),
        (
            #"{"advertise": {"phy": "coded", "coding": "S2"}}"#,
            "advertise.coding: \"S2\" is not a coding; known are s2, s8"
        ),
        (
            #"{"advertise": {"periodic": {"interval": 7}}}"#,
            "advertise.periodic.interval: 7 is out of range; use 7.5 to 81918"
        ),
        (#"{"advertise": {"interval": 5}}"#, "advertise.interval: 5 is out of range; use 20 to 10240"),
        (#"{"services": {}}"#, "services: expected an array, not an object"),
        (#"{"services": [{}]}"#, "services[0].uuid: missing"),
        (
            #"{"services": [{"uuid": "180F"}, {"uuid": "180D", "characteristics": [{"uuid": "18ZZ"}]}]}"#,
            "services[1].characteristics[0].uuid: \"18ZZ\" is not a UUID: "
                + "use 4 or 8 hexadecimal digits, or 32 as 8-4-4-4-12"
        ),
        (
            #"{"services": [{"uuid": "180F", "primary": "yes"}]}"#,
            "services[0].primary: expected true or false, not a string"
        ),
        (#"{"services": [{"uuid": "180F", "handle": 0}]}"#, "services[0].handle: 0 is out of range; use 1 to 65535"),
        (
            #"{"services": [{"uuid": "180F", "handle": "x"}]}"#,
            "services[0].handle: \"x\" is not a handle: use 1 to 65535, or 0x0001 to 0xFFFF"
        ),
        (#"{"services": [{"uuid": "180F", "includes": [1]}]}"#, "services[0].includes[0]: there is no services[1]"),
        (
            #"{"services": [{"uuid": "180F", "includes": [0]}]}"#,
            "services[0].includes[0]: a service cannot include itself"
        ),
        (characteristic(#""uuid": "2A19""#), "services[0].characteristics[0].properties: missing"),
        (
            characteristic(#""uuid": "2A19", "properties": ["read", "raed"]"#),
            "services[0].characteristics[0].properties[1]: \"raed\" is not a property; known are broadcast, read, "
                + "writeWithoutResponse, write, notify, indicate, authenticatedSignedWrites, extendedProperties"
        ),
        (
            characteristic(#""uuid": "2A19", "properties": [], "permissions": ["all"]"#),
            "services[0].characteristics[0].permissions[0]: \"all\" is not a permission; known are read, write, "
                + "readEncrypted, writeEncrypted, readAuthenticated, writeAuthenticated, "
                + "readSecureConnections, writeSecureConnections, readAuthorized, writeAuthorized, writeSigned"
        ),
        (
            characteristic(#""uuid": "2A19", "properties": [], "value": "abc""#),
            "services[0].characteristics[0].value: \"abc\" has an odd number of hexadecimal digits; a byte takes two"
        ),
        (
            characteristic(#""uuid": "2A19", "properties": [], "value": 7"#),
            "services[0].characteristics[0].value: expected hexadecimal digits or {\"text\": ...}, not a number"
        ),
        (
            characteristic(#""uuid": "2A19", "properties": [], "value": {"txt": "a"}"#),
            "services[0].characteristics[0].value.txt: unknown key; known are text"
        ),
        (
            characteristic(#""uuid": "2A19", "properties": [], "value": "\#(String(repeating: "00", count: 513))""#),
            "services[0].characteristics[0].value: the value has 513 bytes; the maximum is 512"
        ),
        (
            characteristic(#""uuid": "2A19", "properties": [], "value": "000000", "maxLength": 2"#),
            "services[0].characteristics[0].maxLength: the value has 3 bytes, more than 2"
        ),
        (
            characteristic(#""uuid": "2A19", "properties": [], "maxLength": 513"#),
            "services[0].characteristics[0].maxLength: 513 is out of range; use 0 to 512"
        ),
        (
            characteristic(#""uuid": "2A19", "properties": [], "descriptors": [{"uuid": "2901", "name": "x"}]"#),
            "services[0].characteristics[0].descriptors[0].name: unknown key; known are uuid, handle, value, permissions"
        ),
    ]

    private static func characteristic(_ members: String) -> String {
        #"{"services": [{"uuid": "180F", "characteristics": [{\#(members)}]}]}"#
    }

    @Test(arguments: wrong)
    func invalidProfileIsRefusedWithThePlace(text: String, problem: String) {
        let error = #expect(throws: ProfileError.self) { try profile(text) }
        #expect(error?.description == problem)
    }

    @Test(
        arguments: [
            (#"{"uuid": "180F", "handle": 16}"#, "services[0].handle: 16"),
            (#"{"uuid": "180F", "handle": 30}, {"uuid": "1809", "handle": 30}"#, "services[1].handle: 30"),
            (
                #"{"uuid": "180F", "handle": 30}, {"uuid": "1809", "handle": 29, "includes": [0]}"#,
                "services[1].handle: 29"
            ),
            (
                #"{"uuid": "180F", "characteristics": [{"uuid": "2A19", "properties": [], "handle": 20}]}"#,
                "services[0].characteristics[0].handle: 20"
            ),
            (
                #"{"uuid": "180F", "characteristics": [{"uuid": "2A19", "properties": ["notify"], "#
                    + #""descriptors": [{"uuid": "2901", "handle": 22}]}]}"#,
                "services[0].characteristics[0].descriptors[0].handle: 22"
            ),
        ]
    )
    func handleThatIsNotFreeIsRefusedWithThePlace(services: String, beginning: String) throws {
        let profile = try profile(#"{"services": [\#(services)]}"#)
        let error = #expect(throws: ProfileError.self) { try profile.checkHandles() }
        #expect(
            error?.description == "\(beginning) is not free; GAP and GATT have 1 to 19, "
                + "and the handles of a service rise without overlapping those of another one"
        )
    }

    @Test func exhaustedHandlesAreReported() throws {
        let profile = try profile(
            #"{"services": [{"uuid": "180F", "handle": 20, "#
                + #""characteristics": [{"uuid": "2A19", "properties": [], "handle": 65534}]}, {"uuid": "1809"}]}"#
        )
        let error = #expect(throws: ProfileError.self) { try profile.checkHandles() }
        #expect(error?.description == "services: there are too few free attribute handles in a row")
    }

    @Test func payloadThatFitsIsInTheAdvertisingData() throws {
        let payload = try profile(
            #"{"name": "Bat", "advertise": {"services": ["180F"], "manufacturerData": {"004C": "ff"}}}"#
        ).payload
        #expect(payload.advertisingData.bytes.hexadecimal == "020106" + "03030f18" + "04ff4c00ff" + "0409426174")
        #expect(payload.scanResponseData.bytes.isEmpty)
    }

    @Test func serviceDataIsAdvertised() throws {
        let payload = try profile(#"{"advertise": {"serviceData": {"FCD2": "400164"}}}"#).payload
        #expect(payload.advertisingData.bytes.hexadecimal == "020106" + "0616d2fc400164")
    }

    @Test func partsWithoutRoomMoveToTheScanResponse() throws {
        let payload = try profile(
            #"{"name": "A name of 19 octets", "advertise": {"services": ["12345678-1234-5678-1234-56789ABCDEF0"]}}"#
        ).payload
        #expect(
            payload.advertisingData.bytes.hexadecimal == "020106" + "1107" + "f0debc9a785634127856341278563412"
        )
        #expect(payload.scanResponseData.bytes.hexadecimal == "1409" + Array("A name of 19 octets".utf8).hexadecimal)
    }

    @Test func payloadTooLongForLegacyPDUsIsAllInTheAdvertisingData() throws {
        let payload = try profile(
            #"{"name": "abc", "advertise": {"manufacturerData": {"004C": "\#(String(repeating: "00", count: 40))"}}}"#
        ).payload
        #expect(payload.advertisingData.length == 3 + 44 + 5)
        #expect(payload.scanResponseData.bytes.isEmpty)
    }

    @Test func longestDataIsAdvertised() throws {
        let data = String(repeating: "00", count: 252)
        let payload = try profile(
            #"{"advertise": {"serviceData": {"FCD2": "\#(data)"}, "manufacturerData": {"004C": "\#(data)"}}}"#
        ).payload
        #expect(payload.advertisingData.length == 3 + 256 + 256)
    }

    @Test(arguments: ["2m", "coded"])
    func payloadOfExtendedPDUsIsAllInTheAdvertisingData(phy: String) throws {
        let payload = try profile(
            #"{"name": "A name of 18 bytes", "advertise": {"phy": "\#(phy)", "connectable": false, "#
                + #""services": ["12345678-1234-5678-1234-56789ABCDEF0"]}}"#
        ).payload
        #expect(payload.advertisingData.length == 3 + 18 + 20)
        #expect(payload.scanResponseData.bytes.isEmpty)
    }
}
