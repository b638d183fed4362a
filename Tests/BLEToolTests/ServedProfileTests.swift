import BLEGATT
import BLEProfiles
import BluetoothTypes
import Foundation
import Testing

@testable import BLETool

@Suite("A served profile")
struct ServedProfileTests {
    private let profile = """
        {"services": [
          {"uuid": "180F", "handle": 16, "includes": [1], "characteristics": [
            {"uuid": "2A19", "properties": ["read", "notify"], "value": "64", "maxLength": 1,
             "descriptors": [{"uuid": "2901", "value": {"text": "level"}, "permissions": ["readEncrypted"]}]}]},
          {"uuid": "1809", "primary": false, "characteristics": [
            {"uuid": "2A19", "properties": ["write"]}]}]}
        """

    private func definitions() throws -> [ServiceDefinition] {
        try Profile(decoding: JSON(parsing: Array(profile.utf8))).definitions
    }

    @Test("The server declares the profile's attributes")
    func serverDeclaresTheAttributesOfTheProfile() throws {
        #expect(
            try definitions() == [
                ServiceDefinition(
                    uuid: "180F",
                    handle: 16,
                    includes: [.index(1)],
                    characteristics: [
                        CharacteristicDefinition(
                            uuid: "2A19",
                            properties: [.read, .notify],
                            permissions: .read,
                            value: .stored([0x64], maximumLength: 1),
                            descriptors: [
                                DescriptorDefinition(
                                    uuid: "2901",
                                    value: .stored(Array("level".utf8)),
                                    permissions: .readEncrypted
                                )
                            ]
                        )
                    ]
                ),
                ServiceDefinition(
                    uuid: "1809",
                    isPrimary: false,
                    characteristics: [
                        CharacteristicDefinition(
                            uuid: "2A19",
                            properties: .write,
                            permissions: .write,
                            value: .stored([])
                        )
                    ]
                ),
            ]
        )
    }

    @Test("Commands and events use the profile's names")
    func commandsAndEventsUseTheNamesOfTheProfile() throws {
        let served = ServedProfile(try Server().publish(definitions()))
        #expect(try served.handle(.uuid("2A19", service: "180F")) == 19)
        #expect(throws: ArgumentProblem.self) { try served.handle(.uuid("2A19", service: nil)) }
        #expect(served.attribute(19) == .init(uuid: "2A19", handle: 19))
        #expect(served.attribute(20) == .init(uuid: "2A19", handle: 20, isDescriptor: true))
        #expect(served.attribute(21) == .init(uuid: "2A19", handle: 21, isDescriptor: true))
        #expect(served.attribute(16) == .init(uuid: nil, handle: 16))
    }

    @Test("A handle that is not free is an error with the file and the place")
    func handleThatIsNotFreeIsAnErrorWithItsPlace() async throws {
        let path = FileManager.default.temporaryDirectory.path + "/profile-\(UUID().uuidString).json"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try profile.write(toFile: path, atomically: true, encoding: .utf8)
        let error = await #expect(throws: FileError.self) { try await Profile(contentsOf: path) }
        #expect(
            error?.description == "\(path): services[0].handle: 16 is not free; GAP and GATT have 1 to 19, "
                + "and the handles of a service rise without overlapping those of another one"
        )
    }
}
