import NIOCore
import NIOHTTP1

/// The last handler of a connection to the web server: answers requests.
///
/// ## Bounds
///
/// Requests have no body, and their header is limited by the decoder. Each phase has a deadline that bytes do not
/// extend: the first request, a further request, and the response. The next request is read when the response was
/// written.
final class RequestHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    /// How long the first request may take.
    static let firstRequestTimeout = TimeAmount.seconds(10)
    /// How long a connection may be without another request, and how long that may take.
    static let idleTimeout = TimeAmount.seconds(75)
    /// How long a response may take, with its transmission.
    static let responseTimeout = TimeAmount.seconds(30)

    private enum Phase {
        case waiting
        case received(HTTPRequestHead)
        case responding
        case closing
    }

    private let content: any WebContent
    private let hosts: HostPolicy
    private var phase = Phase.waiting
    private var timer: Scheduled<Void>?

    init(content: any WebContent, hosts: HostPolicy) {
        self.content = content
        self.hosts = hosts
    }

    // MARK: Channel

    func channelActive(context: ChannelHandlerContext) {
        setTimer(Self.firstRequestTimeout, context)
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        phase = .closing
        timer?.cancel()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
    }

    private func setTimer(_ time: TimeAmount, _ context: ChannelHandlerContext) {
        timer?.cancel()
        let loopBound = context.loopBound
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: time) {
            loopBound.value.close(promise: nil)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? HTTPParserError {
            switch phase {
            case .waiting, .received:
                let isTooLong = error == .headerOverflow
                let response = WebResponse.failure(
                    isTooLong ? .requestHeaderFieldsTooLarge : .badRequest,
                    isTooLong ? "The header of the request is too long." : "This is not a request of HTTP."
                )
                phase = .responding
                send(response, isKeepAlive: false, omitsBody: false, context)
                return
            case .responding, .closing: break
            }
        }
        phase = .closing
        context.close(promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch (unwrapInboundIn(data), phase) {
        case (.head(let head), .waiting):
            if let refusal = Self.refusal(of: head) {
                phase = .responding
                send(refusal, isKeepAlive: false, omitsBody: head.method == .HEAD, context)
            } else {
                phase = .received(head)
            }
        case (.end, .received(let head)):
            phase = .responding
            respond(to: head, context)
        // A request that has been refused, or parts of a body that the header did not announce.
        default: break
        }
    }

    // MARK: Requests

    /// The response to a request that cannot be handled; nil for one that can.
    private static func refusal(of head: HTTPRequestHead) -> WebResponse? {
        guard head.method == .GET || head.method == .HEAD else {
            var response = WebResponse.failure(.methodNotAllowed, "Only GET and HEAD are possible.")
            response.additionalHeaders = [("Allow", "GET, HEAD")]
            return response
        }
        let lengths = head.headers["Content-Length"]
        guard !head.headers.contains(name: "Transfer-Encoding"), lengths.allSatisfy({ $0 == "0" }) else {
            return .failure(.payloadTooLarge, "A request can have no body.")
        }
        return nil
    }

    /// The path of a request and the host that it is for. A proxy sends both together (RFC 9112, section 3.2.2).
    private static func target(of head: HTTPRequestHead) -> (path: String, host: String?) {
        var uri = head.uri[...]
        var host = head.headers.first(name: "Host")
        for scheme in ["http://", "https://"] where uri.lowercased().hasPrefix(scheme) {
            uri = uri.dropFirst(scheme.count)
            let end = uri.firstIndex { "/?#".contains($0) } ?? uri.endIndex
            host = String(uri[..<end])
            uri = uri[end...]
            break
        }
        let path = uri.prefix { $0 != "?" && $0 != "#" }
        return (path.isEmpty ? "/" : String(path), host)
    }

    private func respond(to head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        setTimer(Self.responseTimeout, context)
        let (path, host) = Self.target(of: head)
        let omitsBody = head.method == .HEAD
        // After a request to change the protocol, the decoder parses nothing and keeps what follows.
        let isKeepAlive = head.isKeepAlive && !head.headers.contains(name: "Upgrade")
        if head.version != .http1_0, head.headers["Host"].count != 1 {
            let refusal = WebResponse.failure(.badRequest, "A request must have one Host field.")
            return send(refusal, isKeepAlive: false, omitsBody: omitsBody, context)
        }
        if !content.acceptsAnyHost(path: path), let host, !hosts.accepts(host) {
            let refusal = WebResponse.failure(
                .misdirectedRequest,
                "This is no known name of the gateway. Use its address, or add the name to the setting httpNames."
            )
            return send(refusal, isKeepAlive: isKeepAlive, omitsBody: omitsBody, context)
        }
        guard let response = content.response(path: path, on: context.eventLoop) else {
            let refusal = WebResponse.failure(.notFound, "There is no such page.")
            return send(refusal, isKeepAlive: isKeepAlive, omitsBody: omitsBody, context)
        }
        response.hop(to: context.eventLoop).assumeIsolated().whenComplete { [self] result in
            let failure = WebResponse.failure(.internalServerError, "The response could not be made.")
            send((try? result.get()) ?? failure, isKeepAlive: isKeepAlive, omitsBody: omitsBody, context)
        }
    }

    private func send(
        _ response: WebResponse,
        isKeepAlive: Bool,
        omitsBody: Bool,
        _ context: ChannelHandlerContext
    ) {
        guard case .responding = phase else { return }
        setTimer(Self.responseTimeout, context)
        var headers = response.headers
        headers.add(name: "Connection", value: isKeepAlive ? "keep-alive" : "close")
        let head = HTTPResponseHead(version: .http1_1, status: response.status, headers: headers)
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenComplete { [self] result in
            finish(isKeepAlive: isKeepAlive && (try? result.get()) != nil, context)
        }
        if omitsBody || response.body.readableBytes == 0 {
            context.writeAndFlush(wrapOutboundOut(.head(head)), promise: written)
        } else {
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(response.body))), promise: written)
        }
    }

    /// Ends a response that was written. Then the next request can come, which may have been received already.
    private func finish(isKeepAlive: Bool, _ context: ChannelHandlerContext) {
        guard case .responding = phase else { return }
        phase = isKeepAlive ? .waiting : .closing
        setTimer(Self.idleTimeout, context)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        if !isKeepAlive { context.close(promise: nil) }
    }
}
