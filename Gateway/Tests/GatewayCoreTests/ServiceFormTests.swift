import ESPHomeMessages
import ESPHomeProtocol
import Testing

/// The form of UUIDs for clients of different versions of the API.
@Suite(.timeLimit(.minutes(2)))
struct ServiceFormTests {
    /// Returns the services of the first device in the form for a client of a version.
    private func characteristics(minorVersion: UInt8) async throws -> [ESPHomeBluetoothGATTCharacteristic] {
        try await withGateway { world in
            let client = try await APIClient(port: world.port, minorVersion: minorVersion)
            let address = world.devices[0].address.value
            try await client.connect(address)
            var request = ESPHomeBluetoothGATTGetServicesRequest()
            request.address = address
            try await client.send(.getServicesRequest, request)
            let response = try await client.next(
                .getServicesResponse,
                as: ESPHomeBluetoothGATTGetServicesResponse.self
            ) { $0.services[0].uuid == [0x9F3D_0001_5C3A_4F8E, 0x9A52_0D4A_1E6C_7B11] }
            return response.services[0].characteristics
        }
    }

    @Test func oldClientReceivesUUIDsOf128Bits() async throws {
        let found = try await characteristics(minorVersion: 10)
        #expect(found[0].uuid == [0x0000_2A6E_0000_1000, 0x8000_0080_5F9B_34FB])
        #expect(found[0].shortUuid == 0)
        #expect(found[1].descriptors.map(\.uuid) == [[0x0000_2902_0000_1000, 0x8000_0080_5F9B_34FB]])
        #expect(found[1].descriptors.map(\.shortUuid) == [0])
    }

    @Test func clientOfVersion12ReceivesShortUUIDs() async throws {
        let found = try await characteristics(minorVersion: 12)
        #expect(found[0].uuid.isEmpty)
        #expect(found[0].shortUuid == 0x2A6E)
        #expect(found[1].descriptors.map(\.shortUuid) == [0x2902])
    }
}
