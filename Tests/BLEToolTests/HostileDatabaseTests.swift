import ArgumentParser
import BLE
import BLEByteCoding
import BLECapture
import BLEGATT
import BLEHCITransport
import Foundation
import Testing

@testable import BLETool

/// A server whose database takes longer to discover than `ble explore` allows.
@Suite("ble explore and a server with a database of any size", .timeLimit(.minutes(10)))
struct HostileDatabaseTests {
    private static let advice = "use attributes by their handles, or discover single services"

    /// The result of a run of the command.
    private struct Run {
        let error: (any Error)?
        /// The opcodes of the PDUs of the Attribute Protocol that the command has sent.
        let opcodes: [UInt8]
    }

    /// Runs `ble explore` for a server on a controller without pacing.
    ///
    /// - Parameters:
    ///   - options: options of the command, in addition to those for the controller and the connection.
    ///   - handler: answers accesses to the app's values on the server.
    private func explore(
        _ services: [ServiceDefinition],
        mtu: UInt16,
        options: [String] = [],
        handler: Peripheral.ValueHandler? = nil
    ) async throws -> Run {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("explore-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var controllers = ControllerServer.Configuration()
        controllers.pacesPackets = false
        let served = ControllerServer(configuration: controllers) { _ in }
        _ = try await served.listen(on: .unix(path: "\(folder)/hci"))
        var configuration = Adapter.Configuration()
        configuration.stateLocation = .nowhere
        configuration.mtu = mtu
        let server = try await Adapter.open(.unix(path: "\(folder)/hci"), configuration: configuration)
        _ = try await server.peripheral.publish(services, handler: handler)
        let advertising = try await server.peripheral.startAdvertising(AdvertisementConfiguration())
        let address = try await server.information.identityAddress
        let arguments = [
            "explore", "\(address)", "--address-type", "public", "--adapter", "unix:\(folder)/hci",
            "--state-dir", folder, "--capture", "\(folder)/capture.btsnoop", "--timeout", "300",
        ]
        let command = try BLECommand.parseAsRoot(arguments + options)
        var explore = try #require(command as? any AsyncParsableCommand)
        var failure: (any Error)?
        do { try await explore.run() } catch { failure = error }
        await advertising.stop()
        await server.close()
        await served.close()
        let capture = try await File.read("\(folder)/capture.btsnoop")
        return Run(error: failure, opcodes: try Self.opcodes(in: capture))
    }

    /// The opcodes of the ATT PDUs that the recording host has sent.
    private static func opcodes(in capture: [UInt8]) throws -> [UInt8] {
        var reader = CaptureReader()
        reader.append(capture.rawSpan)
        reader.finish()
        var opcodes: [UInt8] = []
        while case .record = try reader.advance() {
            guard let record = reader.record, case .packet(.acl, .hostToController, let bytes) = record.content else {
                continue
            }
            let packet = [UInt8](copying: bytes)
            // The first fragment of a frame on the channel of the Attribute Protocol.
            guard packet.count > 8, packet[1] >> 4 & 0x03 != 0x01, packet[6] == 0x04, packet[7] == 0x00 else {
                continue
            }
            opcodes.append(packet[8])
        }
        return opcodes
    }

    private func expectFailure(_ run: Run, _ line: String, requests: ClosedRange<Int>) throws {
        let error = try #require(run.error)
        #expect(ToolError.description(of: error) == line)
        #expect(BLECommand.exitCode(for: error) == .failure)
        #expect(requests.contains(run.opcodes.count), "\(run.opcodes.count) requests")
        // Discovery has not ended, so no value was read.
        #expect(!run.opcodes.contains(0x0A) && !run.opcodes.contains(0x0C))
    }

    @Test("More than 2,000 attributes end the command with one line that gives the limit and advice")
    func serverWithTooManyAttributesEndsTheCommand() async throws {
        let definition = CharacteristicDefinition(
            uuid: "2A19",
            properties: .read,
            permissions: .read,
            value: .stored([7])
        )
        let services = [ServiceDefinition(uuid: "180F", characteristics: Array(repeating: definition, count: 2_100))]
        try expectFailure(
            await explore(services, mtu: 517),
            "the peer has more than \(DiscoveryLimits.attributes) attributes and discovery was stopped; \(Self.advice)",
            requests: 1...DiscoveryLimits.attributes
        )
    }

    @Test("A server with an endless database ends the command after a bounded number of requests")
    func serverThatNeverComesToItsEndEndsTheCommand() async throws {
        // With 128-bit UUIDs and an ATT_MTU of 23, a response has one service. Each takes two more requests for its
        // content.
        let service = ServiceDefinition(uuid: "0000A0A0-5354-0000-0000-000000000001", characteristics: [])
        try expectFailure(
            await explore(Array(repeating: service, count: 1_400), mtu: 23),
            "discovery was stopped after \(DiscoveryLimits.requests) requests that did not reach the end; \(Self.advice)",
            requests: DiscoveryLimits.requests...DiscoveryLimits.requests + 8
        )
    }

    @Test("A server that does not answer in time ends the command at its limit")
    func serverThatDoesNotAnswerEndsTheCommand() async throws {
        let definition = CharacteristicDefinition(
            uuid: "2A19",
            properties: .read,
            permissions: .read,
            value: .handled
        )
        let (silence, end) = AsyncStream<Never>.makeStream()
        defer { end.finish() }
        let run = try await explore(
            [ServiceDefinition(uuid: "180F", characteristics: [definition])],
            mtu: 517,
            options: ["--limit", "2"]
        ) { _, _ in
            for await _ in silence {}
            return [7]
        }
        let error = try #require(run.error)
        #expect(
            ToolError.description(of: error)
                == "the peer was not explored in 2 s; --limit sets another time, and `ble read` reads single values"
        )
        #expect(BLECommand.exitCode(for: error) == .failure)
    }
}
