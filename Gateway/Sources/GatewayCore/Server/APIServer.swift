import ESPHomeProtocol
import Foundation
import NIOCore
import NIOPosix

/// Accepts clients of the native API.
struct APIServer: Sendable {
    let channel: any Channel

    /// Listens for clients.
    ///
    /// - Throws: an error of the network, for example if the port is in use.
    static func start(
        hub: GatewayHub,
        information: ServerInformation,
        configuration: GatewayConfiguration,
        group: any EventLoopGroup
    ) async throws -> APIServer {
        let key = configuration.encryptionKey
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(ChannelOptions.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(ChannelOptions.backlog, value: 64)
            .childChannelOption(ChannelOptions.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(ChannelOptions.socketOption(.so_keepalive), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let session = APISession(server: information, key: key, now: channel.eventLoop.now)
                    try channel.pipeline.syncOperations.addHandler(ClientHandler(hub: hub, session: session))
                }
            }
        do {
            return APIServer(
                channel: try await bootstrap.bind(host: configuration.host, port: configuration.port).get()
            )
        } catch let error as IOError where configuration.host == "::" && error.errnoCode == EAFNOSUPPORT {
            // This machine has no IPv6.
            return APIServer(channel: try await bootstrap.bind(host: "0.0.0.0", port: configuration.port).get())
        }
    }

    /// The port that clients connect to.
    var port: Int? { channel.localAddress?.port }

    /// Accepts no more clients.
    func stop() async {
        try? await channel.close().get()
    }
}
