import Foundation
import Logging
import Synchronization
import Testing

@testable import Gateway

struct ServiceManagerTests {
    /// The socket of a service manager.
    private final class Manager {
        let path = NSTemporaryDirectory() + "/notify-\(UUID().uuidString.prefix(8))"
        private let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)

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
        }

        deinit {
            close(descriptor)
            unlink(path)
        }

        /// Waits for the next message. The wait blocks no thread of the tasks, which the service needs.
        func receive() async -> String {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread { [descriptor] in
                    var buffer = [UInt8](repeating: 0, count: 100)
                    let count = recv(descriptor, &buffer, buffer.count, 0)
                    continuation.resume(returning: String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self))
                }
            }
        }
    }

    @Test func managerIsToldThatTheGatewayServesAndLives() async throws {
        let manager = Manager()
        let environment = ["NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "300000"]
        let service = ServiceReporter(
            manager: try #require(ServiceManager(environment: environment)),
            logger: Logger(label: "test"),
            serves: {},
            answers: {}
        )
        let run = Task { try await service.run() }
        var messages: [String] = []
        for _ in 0..<3 { messages.append(await manager.receive()) }
        #expect(messages == ["READY=1", "WATCHDOG=1", "WATCHDOG=1"])
        run.cancel()
        try await run.value
        var last = await manager.receive()
        while last == "WATCHDOG=1" { last = await manager.receive() }
        #expect(last == "STOPPING=1")
    }

    /// The gateway gives no sign of life while one of its threads hangs.
    @Test func watchdogIsNotFedBeforeTheThreadsAnswer() async throws {
        let manager = Manager()
        let environment = ["NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "3000"]
        let service = ServiceReporter(
            manager: try #require(ServiceManager(environment: environment)),
            logger: Logger(label: "test"),
            serves: {},
            answers: { try? await Task.sleep(for: .seconds(3600)) }
        )
        let run = Task { try await service.run() }
        #expect(await manager.receive() == "READY=1")
        run.cancel()
        try await run.value
        #expect(await manager.receive() == "STOPPING=1")
    }

    @Test func watchdogOfAnotherProcessIsIgnored() {
        let environment = ["NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "7"]
        #expect(ServiceManager(environment: environment, processIdentifier: 7)?.watchdogTimeout == .seconds(1))
        #expect(ServiceManager(environment: environment, processIdentifier: 8)?.watchdogTimeout == nil)
    }

    @Test(arguments: [[:], ["NOTIFY_SOCKET": ""], ["NOTIFY_SOCKET": "vsock:2:1"], ["WATCHDOG_USEC": "1"]])
    func withoutSocketThereIsNoManager(environment: [String: String]) {
        #expect(ServiceManager(environment: environment) == nil)
    }

    @Test func managerThatIsGoneIsNoError() {
        let path = "/" + String(repeating: "x", count: 200)
        #expect(ServiceManager(environment: ["NOTIFY_SOCKET": "/nowhere/notify"])?.notify(.ready) == false)
        #expect(ServiceManager(environment: ["NOTIFY_SOCKET": path])?.notify(.ready) == false)
    }
}
