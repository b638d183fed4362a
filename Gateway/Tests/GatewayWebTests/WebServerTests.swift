import Foundation
import GatewayFleet
import Logging
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
}
