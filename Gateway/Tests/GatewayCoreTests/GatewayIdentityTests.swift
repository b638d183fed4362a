import BLE
import ESPHomeMessages
import ESPHomeProtocol
import Foundation
import GatewayCore
import GatewayTestSupport
import Testing

/// The address by which clients recognize a gateway.
@Suite(.timeLimit(.minutes(2)))
struct GatewayIdentityTests {
    /// Runs `body` with the path of a folder.
    private func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "identity-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder.path)
    }

    private func openAdapter() async throws -> Adapter {
        try await Adapter.open(.virtual(name: "identity \(UInt64.random(in: 0 ... .max))"))
    }

    /// Runs a gateway, and returns the address that it reports to a client.
    private func reportedAddress(
        directory: String?,
        _ adapters: [Adapter],
        log: LogRecorder = LogRecorder()
    ) async throws -> String {
        var configuration = GatewayConfiguration(name: "raspberrypi")
        configuration.host = "127.0.0.1"
        configuration.port = 0
        configuration.stateDirectory = directory
        configuration.logger = log.logger
        let gateway = Gateway(configuration: configuration, adapters: adapters)
        let run = Task { try await gateway.run() }
        do {
            await gateway.waitUntilServing()
            let port = try #require(await gateway.status.port)
            let client = try await APIClient(port: port)
            try await client.send(.deviceInfoRequest)
            let information = try await client.next(.deviceInfoResponse, as: ESPHomeDeviceInfoResponse.self)
            run.cancel()
            try await run.value
            return information.macAddress
        } catch {
            run.cancel()
            try? await run.value
            throw error
        }
    }

    /// Two machines of one name, and a dongle that is moved from one to the other, or none.
    @Test(arguments: [true, false])
    func gatewaysHaveDifferentAddressesWhichTheyKeep(hasAdapter: Bool) async throws {
        let adapters = try await hasAdapter ? [openAdapter()] : []
        try await withFolder { folder in
            let first = try await reportedAddress(directory: folder + "/first", adapters)
            let second = try await reportedAddress(directory: folder + "/second", adapters)
            #expect(first != second)
            #expect(try await reportedAddress(directory: folder + "/first", adapters) == first)
            #expect(try await reportedAddress(directory: folder + "/second", []) == second)
            // Locally administered, and no group.
            let byte = try #require(UInt8(first.prefix(2), radix: 16))
            #expect(byte & 0b11 == 0b10)
        }
        for adapter in adapters { await adapter.close() }
    }

    @Test func addressOfAnEarlierVersionStays() async throws {
        try await withFolder { folder in
            try Data("00:1A:7D:DA:71:13\n".utf8).write(to: URL(fileURLWithPath: folder + "/gateway-address"))
            #expect(try await reportedAddress(directory: folder, []) == "00:1A:7D:DA:71:13")
        }
    }

    @Test func damagedFileIsReplaced() async throws {
        try await withFolder { folder in
            try Data([0xFF, 0x00]).write(to: URL(fileURLWithPath: folder + "/gateway-address"))
            let first = try await reportedAddress(directory: folder, [])
            #expect(try await reportedAddress(directory: folder, []) == first)
        }
    }

    /// Otherwise the address would be another one after each start.
    @Test(arguments: [nil, "/dev/null/state"])
    func addressThatCannotBeKeptIsThatOfTheAdapter(directory: String?) async throws {
        let adapter = try await openAdapter()
        let log = LogRecorder()
        let address = try await reportedAddress(directory: directory, [adapter], log: log)
        #expect(try await adapter.information.identityAddress.description == address)
        let warnings = log.messages(.warning).filter { $0.hasPrefix("the gateway's address cannot be kept") }
        #expect(warnings.count == (directory == nil ? 0 : 1))
        await adapter.close()
    }
}
