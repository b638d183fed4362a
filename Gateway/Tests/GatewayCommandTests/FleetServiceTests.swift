import Foundation
import GatewayFleet
import GatewayMQTT
import Logging
import Testing

@testable import Gateway

struct FleetServiceTests {
    /// Stores messages of gateways with the same readings in a journal, and marks the first one as finished.
    private func store(in directory: String, arrival: Int64) throws {
        let journal = try FleetJournal(directory: directory)
        let text = """
            {"time": "2026-11-24T16:48:19.375Z", "format": "ruuvi_5", "readings": {"temperature": {"value": 21}}}
            """
        let tokens = ["hall", "attic"].compactMap {
            journal.append(topic: "ble/sensors/C0DE00000001/\($0)", payload: Array(text.utf8), arrival: arrival)
        }
        try #require(tokens.count == 2)
        #expect(journal.finish([tokens[0]]).isEmpty)
    }

    /// Runs a service without a broker until it has taken the messages in its journal, and returns its lines.
    private func lines(ofJournalIn directory: String) async throws -> [Substring] {
        var descriptors: [Int32] = [0, 0]
        #expect(pipe(&descriptors) == 0)
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        // Port 1 of this machine has no listener.
        let address = try #require(BrokerAddress(parsing: "mqtt://127.0.0.1:1"))
        let configuration = FleetService.Configuration(
            connection: MQTTConfiguration(broker: address, gateway: "fleet", logger: logger),
            session: "test",
            topics: FleetTopics(prefix: "ble"),
            descriptor: descriptors[1]
        )
        let service = try FleetService(configuration, journal: FleetJournal(directory: directory), logger: logger)
        let run = Task { try await service.run() }
        run.cancel()
        try await run.value
        close(descriptors[1])
        let data = FileHandle(fileDescriptor: descriptors[0], closeOnDealloc: true).readDataToEndOfFile()
        return String(decoding: data, as: UTF8.self).split(separator: "\n")
    }

    /// The line of the first message is written. The second message is late for it. But if the clock was set back, it
    /// is not known when the first one arrived, so the second one gives a line.
    @Test(.timeLimit(.minutes(2)), arguments: [(Int64(0), 0), (3600, 1)])
    func transmissionIsNotRememberedIfTheClockWasSetBack(secondsBack: Int64, lineCount: Int) async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "fleet-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        try store(in: path, arrival: now + secondsBack * 1000)
        let lines = try await lines(ofJournalIn: path)
        #expect(lines.count == lineCount)
        #expect(lines.allSatisfy { $0.contains("\"gateway\": \"attic\"") })
    }
}
