import Foundation
import GatewayCore
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import ServiceLifecycle

/// Serves metrics, the status page and the state of health over HTTP/1.1.
package struct WebServer: Service, CustomStringConvertible {
    /// The greatest number of connections.
    static let connectionLimit = 64
    /// The greatest number of bytes of a field of a header, of a whole header, and the greatest number of its fields.
    static let decoderLimits = {
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = 4096
        limits.maxHeaderListSize = 8192
        limits.maxHeaderFieldCount = 64
        return limits
    }()
    /// The greatest number of bytes that the decoder keeps. It keeps the unfinished field of a header with the spaces
    /// before the field's value, which its own limits do not count.
    static let decoderBufferLimit = 8192

    private let address: WebAddress
    private let hosts: HostPolicy
    private let content: any WebContent
    private let logger: Logger
    private let whenServing: @Sendable (_ address: WebAddress) -> Void
    /// The thread of all connections.
    let eventLoop: any EventLoop = MultiThreadedEventLoopGroup.singleton.next()

    /// Creates a server.
    ///
    /// - Parameters:
    ///   - address: where it listens.
    ///   - names: further names by which browsers know this machine.
    ///   - page: what it serves.
    ///   - logger: logs the address when the server has started.
    ///   - whenServing: is called once, with the real port.
    package init(
        address: WebAddress,
        names: [String],
        page: StatusPage,
        logger: Logger,
        whenServing: @escaping @Sendable (_ address: WebAddress) -> Void = { _ in }
    ) {
        self.init(address: address, names: names, content: page, logger: logger, whenServing: whenServing)
    }

    /// Creates a server of the metrics and the health of a fleet's consumer.
    ///
    /// - Parameters:
    ///   - address: where it listens.
    ///   - fleet: what it serves.
    ///   - logger: logs the address when the server has started.
    ///   - whenServing: is called once, with the real port.
    package init(
        address: WebAddress,
        fleet: FleetPage,
        logger: Logger,
        whenServing: @escaping @Sendable (_ address: WebAddress) -> Void = { _ in }
    ) {
        self.init(address: address, names: [], content: fleet, logger: logger, whenServing: whenServing)
    }

    init(
        address: WebAddress,
        names: [String],
        content: any WebContent,
        logger: Logger,
        whenServing: @escaping @Sendable (_ address: WebAddress) -> Void
    ) {
        self.address = address
        hosts = HostPolicy(names: names)
        self.content = content
        self.logger = logger
        self.whenServing = whenServing
    }

    package var description: String { "web server" }

    /// Serves until graceful shutdown or until the task is cancelled.
    ///
    /// - Throws: ``WebServerError`` if the server cannot listen, or another error of the network.
    package func run() async throws {
        let places = ConnectionPlaces(limit: Self.connectionLimit)
        let server = try await listen(places)
        var actual = address
        actual.port = server.localAddress?.port ?? address.port
        logger.info("\(content.name) served", metadata: ["address": "http://\(actual)/"])
        whenServing(actual)
        // An error says that the task was cancelled, which is a normal end too.
        try? await gracefulShutdown()
        try? await server.close()
        places.close()
    }

    /// Returns once the thread of the connections has answered.
    package func answer() async {
        try? await eventLoop.submit {}.get()
    }

    private func listen(_ places: ConnectionPlaces) async throws -> any Channel {
        let (content, hosts) = (content, hosts)
        let bootstrap = ServerBootstrap(group: eventLoop)
            .serverChannelOption(ChannelOptions.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(ChannelOptions.backlog, value: 64)
            .childChannelOption(ChannelOptions.tcpOption(.tcp_nodelay), value: 1)
            // Requests that a client sends without waiting for answers are kept, so little is read at once.
            .childChannelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 4096))
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try Self.configure(channel, content: content, hosts: hosts)
                    places.add(channel)
                    channel.closeFuture.whenComplete { _ in places.remove(channel) }
                }
            }
        do {
            return try await bind(bootstrap, host: address.host)
        } catch let error as WebServerError where address.host == "::" && error.errorNumber == EAFNOSUPPORT {
            // This machine has no IPv6.
            return try await bind(bootstrap, host: "0.0.0.0")
        }
    }

    private func bind(_ bootstrap: ServerBootstrap, host: String) async throws -> any Channel {
        do {
            return try await bootstrap.bind(host: host, port: address.port).get()
        } catch let error as IOError {
            throw WebServerError(address: address, errorNumber: error.errnoCode)
        } catch let error where error is SocketAddressError || error is SocketAddressError.UnknownHost {
            // The name of the host has no address.
            throw WebServerError(address: address, errorNumber: EADDRNOTAVAIL)
        }
    }

    /// Adds the handlers of a connection.
    static func configure(_ channel: any Channel, content: any WebContent, hosts: HostPolicy) throws {
        // `configureHTTPServerPipeline` gives the decoder no limit of its buffer.
        let decoder = HTTPRequestDecoder(limitConfiguration: decoderLimits)
        try channel.pipeline.syncOperations.addHandlers([
            HTTPResponseEncoder(configuration: .init()),
            ByteToMessageHandler(decoder, maximumBufferSize: decoderBufferLimit),
            HTTPServerPipelineHandler(),
            NIOHTTPResponseHeadersValidator(),
            RequestHandler(content: content, hosts: hosts),
        ])
    }
}

/// The reason why the web server cannot listen.
package struct WebServerError: Error, Hashable, CustomStringConvertible {
    /// The address to listen on.
    package let address: WebAddress
    /// The number of the system's error.
    package let errorNumber: Int32

    package var description: String {
        let reason = String(cString: strerror(errorNumber))
        return "cannot serve the status page on \(address): \(reason); \(advice)"
    }

    private var advice: String {
        switch errorNumber {
        case EADDRINUSE: "stop the other program, or choose another port with --http"
        case EACCES where address.port < 1024: "use a port from 1024, or give the process CAP_NET_BIND_SERVICE"
        case EADDRNOTAVAIL: "use an address of this machine with --http"
        default: "check --http"
        }
    }
}
