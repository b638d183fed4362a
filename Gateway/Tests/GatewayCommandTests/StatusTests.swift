import Foundation
import GatewayCore
import Logging
import Testing

@testable import Gateway

struct StatusTests {
    /// The status of a gateway with nothing.
    static let idle = try! JSONDecoder().decode(
        GatewayStatus.self,
        from: Data(
            """
            {"servesClients": true, "port": 6053, "connectionLimit": 20, "adapters": [], "clients": [], "connections": [],
             "advertisementCount": 7, "forwardedAdvertisementCount": 5, "droppedAdvertisementCount": 1,
             "scanMode": "active", "closedClientCounts": {"wrong key": 2}}
            """.utf8
        )
    )

    @Test func textNamesCounts() {
        #expect(
            Self.idle.text == """
                listening on port 6053
                connections: 0 of 20
                advertisements received: 7
                clients closed, wrong key: 2
                """
        )
    }

    @Test func textOfAnAdapterIsSafeOnTerminals() {
        var status = Self.idle
        status.servesClients = false
        status.port = nil
        status.adapters = [
            .init(name: "hci0", isOpen: false, isScanning: false, failure: "no\u{1B}[2J", connectionCount: 0)
        ]
        #expect(status.text.hasPrefix("clients are not served\nadapter hci0: failed: no\\u{1B}[2J, 0 connections\n"))
    }

    @Test func textHasTheBroker() {
        var status = Self.idle
        status.broker = .init(
            address: "mqtt://a:1883",
            isConnected: true,
            waitingCount: 3,
            deliveredCount: 2,
            droppedCount: 1
        )
        #expect(status.text.contains("\nbroker mqtt://a:1883: connected, 2 delivered, 3 waiting, 1 dropped\n"))
    }

    @Test func runningGatewayReportsItsStatusAndKeepsItsSocket() async throws {
        let path = NSTemporaryDirectory() + "/status-\(UUID().uuidString.prefix(8))"
        let server = try StatusServer(path: path, logger: Logger(label: "test")) { Self.idle }
        let running = Task { try await server.run() }
        let client = StatusClient(path: path, timeout: 300)
        while !client.isServed { await Task.yield() }
        #expect(try JSONDecoder().decode(GatewayStatus.self, from: client.read()) == Self.idle)
        #expect(throws: StateError.self) {
            try StatusServer(path: path, logger: Logger(label: "test")) { Self.idle }
        }
        running.cancel()
        _ = await running.result
        #expect(!client.isServed)
    }

    @Test func fileInPlaceOfTheSocketIsReported() async throws {
        let path = NSTemporaryDirectory() + "/status-\(UUID().uuidString.prefix(8))"
        try Data().write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let server = try StatusServer(path: path, logger: Logger(label: "test")) { Self.idle }
        let expected = StateError(
            path: path,
            failure: "this is not a socket",
            advice: "remove it, or name another directory with --state-dir"
        )
        await #expect(throws: expected) { try await server.run() }
    }

    /// Connections wait in the queue of the socket, or are half accepted, when the server ends.
    @Test func serverEndsWhileClientsConnect() async throws {
        let path = NSTemporaryDirectory() + "/status-\(UUID().uuidString.prefix(8))"
        let client = StatusClient(path: path, timeout: 300)
        for _ in 0..<50 {
            let server = try StatusServer(path: path, logger: Logger(label: "test")) { Self.idle }
            let running = Task { try await server.run() }
            while !client.isServed { await Task.yield() }
            let connecting = Task { while client.isServed { await Task.yield() } }
            running.cancel()
            try await running.value
            await connecting.value
        }
    }

    @Test func withoutGatewayTheErrorNamesTheSocket() {
        let error = #expect(throws: StateError.self) { try StatusClient(path: "/dev/null/status").read() }
        #expect(error?.description.hasPrefix("/dev/null/status: no gateway runs") == true)
    }
}
