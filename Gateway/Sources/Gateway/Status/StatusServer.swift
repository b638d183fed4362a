import Foundation
import GatewayCore
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle

/// Reports the status of this process on a UNIX socket: each connection receives one JSON object, and is closed.
struct StatusServer: Service, CustomStringConvertible {
    let path: String
    let logger: Logger
    let status: @Sendable () async -> GatewayStatus

    var description: String { "status socket" }

    /// Creates a server.
    ///
    /// - Parameter path: the path of the socket. One that exists is replaced, so the caller must have the ``StateLock``
    ///   of its directory.
    /// - Throws: ``StateError`` if the path is too long.
    init(path: String, logger: Logger, status: @escaping @Sendable () async -> GatewayStatus) throws(StateError) {
        try Self.checkLength(of: path)
        self.path = path
        self.logger = logger
        self.status = status
    }

    /// Checks that a path is short enough for a socket.
    ///
    /// - Throws: ``StateError`` if it is too long.
    static func checkLength(of path: String) throws(StateError) {
        guard path.utf8.count < 108 else {
            throw StateError(
                path: path,
                failure: "a socket's path has at most 107 bytes",
                advice: "name a shorter directory with --state-dir"
            )
        }
    }

    /// Serves until graceful shutdown or cancellation.
    ///
    /// - Throws: ``StateError`` if the socket cannot be made.
    func run() async throws {
        let server = try await listen()
        defer { unlink(path) }
        // An error tells that the task was cancelled, which is a normal end too.
        try? await gracefulShutdown()
        try? await server.close()
    }

    private func listen() async throws -> any Channel {
        let status = status
        let logger = logger
        let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(StatusHandler(logger: logger, status: status))
                }
            }
        do {
            return try await bootstrap.bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get()
        } catch let error as IOError {
            throw StateError.failed("the status socket cannot be made", path, error.errnoCode)
        } catch is UnixDomainSocketPathWrongType {
            throw StateError(
                path: path,
                failure: "this is not a socket",
                advice: "remove it, or name another directory with --state-dir"
            )
        }
    }
}

/// Writes the status to a connection, and closes it.
private final class StatusHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let logger: Logger
    private let status: @Sendable () async -> GatewayStatus

    init(logger: Logger, status: @escaping @Sendable () async -> GatewayStatus) {
        self.logger = logger
        self.status = status
    }

    func channelActive(context: ChannelHandlerContext) {
        let channel = context.channel
        let (logger, status) = (logger, status)
        channel.eventLoop.makeFutureWithTask { try await status().json }
            .flatMap { channel.writeAndFlush(ByteBuffer(string: $0 + "\n")) }
            .whenComplete { result in
                if case .failure(let error) = result { logger.debug("a request for the status failed", error: error) }
                channel.close(promise: nil)
            }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
