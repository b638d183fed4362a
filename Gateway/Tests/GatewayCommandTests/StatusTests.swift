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

    @Test func runningGatewayReportsItsStatus() async throws {
        let path = NSTemporaryDirectory() + "/status-\(UUID().uuidString.prefix(8))"
        let server = try StatusServer(path: path, logger: Logger(label: "test")) { Self.idle }
        let running = Task { try await server.run() }
        let client = StatusClient(path: path, timeout: 300)
        while !client.isServed { await Task.yield() }
        #expect(try JSONDecoder().decode(GatewayStatus.self, from: client.read()) == Self.idle)
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

    @Test(
        arguments: [
            (ENOENT, "no gateway runs with this state directory; start one with `ble-gateway run`"),
            (ECONNREFUSED, "no gateway runs with this state directory; start one with `ble-gateway run`"),
            (ENOTDIR, "no gateway runs with this state directory; start one with `ble-gateway run`"),
            (EACCES, "this user cannot use the directory; run the command as the user of the service"),
            (EPERM, "this user cannot use the directory; run the command as the user of the service"),
            (EAGAIN, "the gateway did not answer within 5 s; try again, and restart the gateway"),
            (ECONNRESET, "the gateway cannot be reached: Connection reset by peer; try again"),
        ] as [(Int32, String)]
    )
    func errorNamesItsCause(number: Int32, text: String) {
        let description = StatusClient(path: "/state/status.sock").error(number).description
        #expect(description.hasPrefix("/state/status.sock: \(text)"))
    }

    @Test func pathThatIsTooLongIsReported() {
        let path = "/" + String(repeating: "x", count: 107)
        let error = #expect(throws: StateError.self) { try StatusClient(path: path).read() }
        #expect(error?.failure == "a socket's path has at most 107 bytes")
    }

    /// A socket that accepts no connections. The queue of those that wait has room for one.
    private final class SilentSocket {
        let path = NSTemporaryDirectory() + "/silent-\(UUID().uuidString.prefix(8))"
        private let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)

        init() {
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
            let result = withUnsafePointer(to: address) { address in
                address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            #expect(result == 0)
            let isListening = listen(descriptor, 0) == 0
            #expect(isListening)
        }

        deinit {
            close(descriptor)
            unlink(path)
        }
    }

    /// The first request waits for the answer, and the second one for the connection.
    @Test(.timeLimit(.minutes(1))) func gatewayThatDoesNotAnswerIsReported() {
        let socket = SilentSocket()
        defer { withExtendedLifetime(socket) {} }
        let client = StatusClient(path: socket.path, timeout: 1)
        for _ in 0..<2 {
            let error = #expect(throws: StateError.self) { try client.read() }
            #expect(error?.failure == "the gateway did not answer within 1 s")
        }
    }

    /// Root can use all directories.
    @Test(.enabled(if: getuid() != 0)) func directoryOfAnotherUserIsReported() throws {
        let directory = StateDirectory(path: NSTemporaryDirectory() + "/refused-\(UUID().uuidString.prefix(8))")
        try directory.create()
        chmod(directory.path, 0)
        defer {
            chmod(directory.path, 0o700)
            try? FileManager.default.removeItem(atPath: directory.path)
        }
        let status = #expect(throws: StateError.self) { try StatusClient(path: directory.statusSocketPath).read() }
        #expect(status?.failure == "this user cannot use the directory")
        let command = try Announcement.parse(["--state-dir", directory.path])
        let announcement = #expect(throws: StateError.self) { try command.serviceFile() }
        #expect(announcement?.failure == "this user cannot use the directory")
    }
}

extension StatusClient {
    /// Whether a process listens on the socket.
    fileprivate var isServed: Bool {
        guard let descriptor = try? connect() else { return false }
        close(descriptor)
        return true
    }
}
