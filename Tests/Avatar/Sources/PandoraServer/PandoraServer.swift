import ArgumentParser
import BLE
import GRPCCore
import GRPCNIOTransportHTTP2Posix
import GRPCProtobuf

/// Serves the Pandora interfaces of one adapter, so that Avatar can test it.
@main
struct PandoraServer: AsyncParsableCommand {
    /// The kind of the adapter's identity address.
    enum Identity: String, ExpressibleByArgument, CaseIterable {
        case `public`
        case random
    }

    /// The input and output that the adapter has in pairings.
    enum Capability: String, ExpressibleByArgument, CaseIterable {
        case displayOnly = "display-only"
        case displayYesNo = "display-yes-no"
        case keyboardOnly = "keyboard-only"
        case noInputNoOutput = "no-input-no-output"
        case keyboardDisplay = "keyboard-display"

        var value: IOCapability {
            switch self {
            case .displayOnly: .displayOnly
            case .displayYesNo: .displayYesNo
            case .keyboardOnly: .keyboardOnly
            case .noInputNoOutput: .noInputNoOutput
            case .keyboardDisplay: .keyboardDisplay
            }
        }
    }

    static let configuration = CommandConfiguration(
        commandName: "pandora-server",
        abstract: "Serves the Pandora interfaces of one adapter over gRPC on the loopback interface."
    )

    @Option(help: "The controller, in the notation of `ble --adapter`.", transform: { try .init(parsing: $0) })
    var adapter: AdapterSpecification

    @Option(help: "The TCP port of the gRPC server; 0 for any.")
    var port = 0

    @Option(help: "The adapter's identity address: the controller's public address, or a random static address.")
    var identity = Identity.public

    @Option(help: "The input and output for pairings.")
    var ioCapability = Capability.keyboardDisplay

    @Option(help: "A file that receives all HCI packets since the last reset: pcapng if it ends so, otherwise btsnoop.")
    var capture: String?

    func run() async throws {
        let device = Device(adapter: adapter, hasRandomIdentity: identity == .random, ioCapability.value, capture)
        try await device.open()
        let server = GRPCServer(
            transport: .http2NIOPosix(
                address: .ipv4(host: "127.0.0.1", port: port),
                transportSecurity: .plaintext
            ),
            services: [
                HostService(device: device), SecurityService(device: device), SecurityStorageService(device: device),
            ]
        )
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask { try await server.serve() }
            if let address = try await server.listeningAddress?.ipv4 {
                print("listening on \(address.host):\(address.port)")
            }
        }
    }
}
