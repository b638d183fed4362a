import Foundation
import Testing

@testable import GatewayCore

struct ListenErrorTests {
    @Test(
        arguments: [
            (EADDRINUSE, 6053, "choose another port with --port"),
            (EACCES, 80, "use a port from 1024, or give the process CAP_NET_BIND_SERVICE"),
            (EACCES, 6053, "check --host and --port"),
            (EADDRNOTAVAIL, 6053, "use an address of this machine with --host"),
        ] as [(Int32, Int, String)]
    )
    func descriptionSaysWhatToDo(errorNumber: Int32, port: Int, advice: String) {
        let text = ListenError(host: "::", port: port, errorNumber: errorNumber).description
        #expect(text.hasPrefix("cannot listen on ::, port \(port): "))
        #expect(text.hasSuffix(advice))
    }

    @Test func hostWithoutAnAddressIsReported() async throws {
        var configuration = GatewayConfiguration(name: "other")
        // A part of a name has at most 63 bytes, so no server is asked for the name.
        configuration.host = String(repeating: "a", count: 64)
        let expected = ListenError(host: configuration.host, port: configuration.port, errorNumber: EADDRNOTAVAIL)
        let gateway = Gateway(configuration: configuration)
        await #expect(throws: expected) { try await gateway.run() }
    }

    @Test func portInUseIsReported() async throws {
        try await withGateway { world in
            var configuration = GatewayConfiguration(name: "other")
            configuration.host = "127.0.0.1"
            configuration.port = world.port
            let expected = ListenError(host: "127.0.0.1", port: world.port, errorNumber: EADDRINUSE)
            await #expect(throws: expected) { try await Gateway(configuration: configuration).run() }
        }
    }
}
