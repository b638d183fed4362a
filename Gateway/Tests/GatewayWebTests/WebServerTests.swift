import Foundation
import GatewayFleet
import Logging
import NIOCore
import Synchronization
import Testing

@testable import GatewayWeb

struct WebServerTests {
    @Test func hostWithoutAnAddressIsReported() async {
        // A part of a name has at most 63 bytes, so no server is asked for the name.
        let address = WebAddress(host: String(repeating: "a", count: 64), port: 8053)
        let server = WebServer(address: address, fleet: FleetPage { FleetStatus() }, logger: Logger(label: "test"))
        let expected = WebServerError(address: address, errorNumber: EADDRNOTAVAIL)
        #expect(expected.description.hasSuffix("use an address of this machine with --http"))
        await #expect(throws: expected) { try await server.run() }
    }

    @Test func answerWaitsUntilTheThreadOfTheConnectionsIsFree() async {
        let address = WebAddress(host: "127.0.0.1", port: 0)
        let server = WebServer(address: address, fleet: FleetPage { FleetStatus() }, logger: Logger(label: "test"))
        let hasAnswered = DispatchSemaphore(value: 0)
        let isEarly = Mutex<Bool?>(nil)
        // The thread is blocked until there is an answer, or for 100 ms.
        server.eventLoop.execute {
            isEarly.withLock { $0 = hasAnswered.wait(timeout: .now() + .milliseconds(100)) == .success }
        }
        await server.answer()
        hasAnswered.signal()
        #expect(isEarly.withLock { $0 } == false)
    }
}
