import ESPHomeProtocol
import Foundation
import NIOCore
import NIOPosix

/// Accepts clients of the native API.
struct APIServer: Sendable {
    let channel: any Channel

    /// Listens for clients.
    ///
    /// - Throws: ``ListenError``, for example if the port is in use, or another error of the network.
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
        let (host, port) = (configuration.host, configuration.port)
        do {
            return try await bind(bootstrap, host: host, port: port)
        } catch let error as ListenError where host == "::" && error.errorNumber == EAFNOSUPPORT {
            // This machine has no IPv6.
            return try await bind(bootstrap, host: "0.0.0.0", port: port)
        }
    }

    private static func bind(_ bootstrap: ServerBootstrap, host: String, port: Int) async throws -> APIServer {
        do {
            return APIServer(channel: try await bootstrap.bind(host: host, port: port).get())
        } catch let error as IOError {
            throw ListenError(host: host, port: port, errorNumber: error.errnoCode)
        } catch let error where error is SocketAddressError || error is SocketAddressError.UnknownHost {
            // The name of the host has no address.
            throw ListenError(host: host, port: port, errorNumber: EADDRNOTAVAIL)
        }
    }

    /// The port that clients connect to.
    var port: Int? { channel.localAddress?.port }

    /// Accepts no more clients.
    func stop() async {
        try? await channel.close().get()
    }
}
