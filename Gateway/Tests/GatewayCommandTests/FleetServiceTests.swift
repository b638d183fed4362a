import Foundation
import GatewayFleet
import Logging
import Synchronization
import Testing

@testable import Gateway
@testable import GatewayMQTT

struct FleetServiceTests {
    private let text = """
        {"time": "2026-11-24T16:48:19.375Z", "format": "ruuvi_5", "readings": {"temperature": {"value": 21}}}
        """

    /// Stores messages of gateways with the same readings in a journal, and marks the first one as finished.
    private func store(in directory: String, arrival: Int64) throws {
        let journal = try FleetJournal(directory: directory)
        let tokens = ["hall", "attic"].compactMap {
            journal.append(topic: "ble/sensors/C0DE00000001/\($0)", payload: Array(text.utf8), arrival: arrival)
        }
        try #require(tokens.count == 2)
        #expect(journal.finish([tokens[0]]).isEmpty)
    }

    /// A service without a broker. By default, no time passes for it, so no window ends.
    private func makeService(
        _ journal: sending FleetJournal,
        descriptor: Int32,
        timeSinceStart: @escaping @Sendable () -> Duration = { .zero }
    ) throws -> FleetService {
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        // Port 1 of this machine has no listener.
        let address = try #require(BrokerAddress(parsing: "mqtt://127.0.0.1:1"))
        var configuration = FleetService.Configuration(
            connection: MQTTConfiguration(broker: address, gateway: "fleet", logger: logger),
            session: "test",
            topics: FleetTopics(prefix: "ble"),
            descriptor: descriptor
        )
        // The ages of messages in the journal are measured by the system's time.
        configuration.window.memory = .seconds(3600)
        return try FleetService(configuration, journal: journal, timeSinceStart: timeSinceStart, logger: logger)
    }

    /// Runs a service until it has taken the messages in its journal, and returns its lines.
    private func lines(ofJournalIn directory: String) async throws -> [Substring] {
        var descriptors: [Int32] = [0, 0]
        #expect(pipe(&descriptors) == 0)
        let service = try makeService(FleetJournal(directory: directory), descriptor: descriptors[1])
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

    /// A service whose journal needs another file for the next message. That file is a pipe. It is opened only when
    /// there is a reader, so the service waits as for a slow disk.
    private func makeSlowService(
        in directory: String,
        descriptor: Int32,
        timeSinceStart: @escaping @Sendable () -> Duration = { .zero }
    ) throws -> (service: FleetService, pipe: String) {
        let journal = try FleetJournal(directory: directory)
        var tokens: [UInt64] = []
        for _ in 0..<4096 {
            let token = journal.append(topic: "ble/none", payload: [], arrival: 0)
            tokens.append(try #require(token))
        }
        let unstored = journal.finish(tokens)
        let pipe = "\(directory)/0000000000001001.journal"
        try #require(unstored.isEmpty && tokens.last == 0x1000 && mkfifo(pipe, 0o600) == 0)
        return (try makeService(journal, descriptor: descriptor, timeSinceStart: timeSinceStart), pipe)
    }

    private func reception(by gateway: String) -> MQTTSession.Reception {
        .init(topic: "ble/sensors/C0DE00000001/\(gateway)", payload: Array(text.utf8), isRetained: false)
    }

    /// The service manager ends a service that does not answer. The metrics and the health have one thread.
    @Test(.timeLimit(.minutes(2)))
    func answerAndStatusDoNotWaitForTheJournal() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "fleet-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let descriptor = open("/dev/null", O_WRONLY)
        defer { close(descriptor) }
        let (service, pipe) = try makeSlowService(in: path, descriptor: descriptor)
        let reception = reception(by: "hall")
        let thread = Thread { _ = service.receive(reception) }
        thread.start()
        while !service.progress.usesStore { try await Task.sleep(for: .milliseconds(1)) }
        // The queue waits for the thread.
        service.queue.async { service.advance() }
        await service.answer()
        #expect(service.status.messages.received == 0)
        #expect(!thread.isFinished)
        let reader = open(pipe, O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        while service.status.messages.received == 0 { try await Task.sleep(for: .milliseconds(1)) }
        #expect(service.status.waitingMessageCount == 1)
    }

    /// The messages of the other gateways have waited behind the one that is stored, so they are not late.
    @Test(.timeLimit(.minutes(2)))
    func waitForTheJournalIsNoPartOfTheWindow() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "fleet-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let descriptor = open("/dev/null", O_WRONLY)
        defer { close(descriptor) }
        let seconds = Atomic<Int64>(0)
        let (service, pipe) = try makeSlowService(in: path, descriptor: descriptor) {
            .seconds(seconds.load(ordering: .relaxed))
        }
        let reception = reception(by: "hall")
        let thread = Thread { _ = service.receive(reception) }
        thread.start()
        while !service.progress.usesStore { try await Task.sleep(for: .milliseconds(1)) }
        seconds.store(30, ordering: .relaxed)
        let reader = open(pipe, O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        while !thread.isFinished { try await Task.sleep(for: .milliseconds(1)) }
        service.advance()
        #expect(service.status.openWindowCount == 1)
        let isStored = service.receive(self.reception(by: "attic"))
        #expect(isStored)
        #expect(service.status.messages.late == 0 && service.status.openWindowCount == 1)
    }
}
