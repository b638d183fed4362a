import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import GatewayTestSupport
@testable import GatewayWeb

/// A connection to the web server in memory.
private final class Connection {
    let channel: EmbeddedChannel
    let content: TestContent

    init() throws {
        let channel = EmbeddedChannel()
        self.channel = channel
        content = TestContent(channel.eventLoop)
        try WebServer.configure(channel, content: content, hosts: HostPolicy(names: []))
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    }

    deinit {
        content.pending.fail(ChannelError.alreadyClosed)
        _ = try? channel.finish(acceptAlreadyClosed: true)
    }

    /// Sends bytes and returns what the server wrote.
    func send(_ text: String) -> String {
        // The server ends a connection with an error in the request, which is an error here, too.
        _ = try? channel.writeInbound(ByteBuffer(string: text))
        return output
    }

    var output: String {
        channel.embeddedEventLoop.run()
        var text = ""
        while var buffer = try? channel.readOutbound(as: ByteBuffer.self) {
            text += buffer.readString(length: buffer.readableBytes) ?? ""
        }
        return text
    }

    func get(_ path: String, _ fields: String = "Host: localhost\r\n", method: String = "GET") -> String {
        send("\(method) \(path) HTTP/1.1\r\n\(fields)\r\n")
    }

    var isOpen: Bool { channel.isActive }
}

/// Keeps what is written, like a connection whose client does not read.
private final class UnreadWrites: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    private var promises: [EventLoopPromise<Void>] = []

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if let promise { promises.append(promise) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        for promise in promises { promise.fail(ChannelError.alreadyClosed) }
    }
}

struct RequestHandlerTests {
    @Test func contentIsSentWithSecurityFields() throws {
        let connection = try Connection()
        let response = connection.get("/")
        #expect(response.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(response.hasSuffix("\r\n\r\ncontent"))
        for field in [
            "Content-Length: 7", "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer",
            "X-Frame-Options: DENY",
            "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self';",
            "Cache-Control: no-store",
        ] {
            #expect(response.contains("\r\n\(field)"), "\(field)")
        }
        #expect(!response.contains("unsafe-inline"))
        #expect(connection.isOpen)
    }

    @Test func connectionServesSeveralRequests() throws {
        let connection = try Connection()
        for _ in 0..<3 { #expect(connection.get("/").hasPrefix("HTTP/1.1 200 ")) }
        #expect(connection.get("/", "Host: a\r\nConnection: close\r\n").contains("\r\nConnection: close\r\n"))
        #expect(!connection.isOpen)
    }

    @Test func pipelinedRequestsAreAnsweredInOrder() throws {
        let connection = try Connection()
        let request = { (path: String) in "GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n" }
        #expect(connection.send(request("/slow") + request("/missing") + request("/")).isEmpty)
        connection.content.pending.succeed(WebResponse(.ok, "text/plain", "slow"))
        let statuses = connection.output.split(separator: "HTTP/1.1 ").map { $0.prefix(3) }
        #expect(statuses == ["200", "404", "200"])
    }

    @Test func headHasTheFieldsOfGetWithoutContent() throws {
        let connection = try Connection()
        let head = connection.get("/", method: "HEAD")
        #expect(head.contains("\r\nContent-Length: 7\r\n") && head.hasSuffix("\r\n\r\n"))
        #expect(head + "content" == connection.get("/"))
    }

    @Test(arguments: ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "BREW"])
    func otherMethodIsRefused(method: String) throws {
        let connection = try Connection()
        let response = connection.get(method == "CONNECT" ? "localhost:1" : "/", method: method)
        if method == "BREW" {
            #expect(response.hasPrefix("HTTP/1.1 4"))
        } else {
            #expect(response.hasPrefix("HTTP/1.1 405 ") && response.contains("\r\nAllow: GET, HEAD\r\n"))
        }
        #expect(!connection.isOpen)
    }

    @Test(arguments: [
        "/missing", "/../etc/passwd", "/..%2f..%2fetc/passwd", "//", "/./", "/index.html", "/style.css/", "/%00", "*",
        "/open/..",
    ])
    func unknownPathIsNotFound(path: String) throws {
        let connection = try Connection()
        #expect(connection.get(path).hasPrefix("HTTP/1.1 404 "))
        #expect(connection.isOpen)
    }

    @Test(arguments: ["/?a=b", "http://localhost/", "http://localhost:8053?x", "HTTP://127.0.0.1/#f"])
    func otherFormsOfTheTargetAreUnderstood(target: String) throws {
        #expect(try Connection().get(target).hasPrefix("HTTP/1.1 200 "))
    }

    @Test(arguments: ["Content-Length: 1\r\n", "Transfer-Encoding: chunked\r\n", "Content-Length: 99999999999\r\n"])
    func requestWithABodyIsRefused(fields: String) throws {
        let connection = try Connection()
        #expect(connection.get("/", "Host: localhost\r\n" + fields).hasPrefix("HTTP/1.1 413 "))
        #expect(!connection.isOpen)
    }

    @Test(arguments: ["/", "/open", "/missing"])
    func requestToUpgradeEndsTheConnection(path: String) throws {
        let connection = try Connection()
        let response = connection.get(path, "Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n")
        #expect(response.contains("\r\nConnection: close\r\n"))
        #expect(!connection.isOpen)
    }

    @Test func hostOfAnotherServerIsMisdirected() throws {
        let connection = try Connection()
        let foreign = "Host: attacker.example:8053\r\n"
        let response = connection.get("/", foreign)
        #expect(response.hasPrefix("HTTP/1.1 421 ") && !response.hasSuffix("content"))
        #expect(connection.get("http://attacker.example/").hasPrefix("HTTP/1.1 421 "))
        // Metrics have no texts, and are read under any name.
        #expect(connection.get("/open", foreign).hasPrefix("HTTP/1.1 200 "))
    }

    @Test(arguments: ["", "Host: a\r\nHost: b\r\n"])
    func requestMustHaveOneHost(fields: String) throws {
        #expect(try Connection().get("/open", fields).hasPrefix("HTTP/1.1 400 "))
    }

    @Test func requestOfHTTP10NeedsNoHost() throws {
        let connection = try Connection()
        #expect(connection.send("GET / HTTP/1.0\r\n\r\n").hasPrefix("HTTP/1.1 200 "))
        #expect(!connection.isOpen)
    }

    @Test func longHeaderIsRefused() throws {
        for fields in [
            "X: \(String(repeating: "x", count: 5000))\r\n",
            (0..<9).map { "X\($0): \(String(repeating: "x", count: 1000))\r\n" }.joined(),
            (0..<70).map { "X\($0): x\r\n" }.joined(),
        ] {
            let connection = try Connection()
            let response = connection.get("/", "Host: localhost\r\n" + fields)
            #expect(response.hasPrefix("HTTP/1.1 431 "), "\(response.prefix(40))")
            #expect(!connection.isOpen)
        }
        let connection = try Connection()
        #expect(connection.get("/" + String(repeating: "a", count: 9000)).hasPrefix("HTTP/1.1 4"))
        #expect(!connection.isOpen)
    }

    @Test func spacesBeforeAValueAreLimited() throws {
        let connection = try Connection()
        #expect(connection.send("GET / HTTP/1.1\r\nX:").isEmpty)
        #expect(connection.isOpen)
        for _ in 0..<3 { _ = connection.send(String(repeating: " ", count: 4096)) }
        #expect(!connection.isOpen)
    }

    @Test(arguments: [
        "\u{1}\u{2}\u{3}\r\n\r\n", "hello\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\n\u{0}: x\r\n\r\n",
    ])
    func garbageIsRefused(bytes: String) throws {
        let connection = try Connection()
        #expect(connection.send(bytes).hasPrefix("HTTP/1.1 400 "))
        #expect(!connection.isOpen)
    }

    @Test func drippingBytesDoNotExtendTheDeadline() throws {
        let connection = try Connection()
        let loop = connection.channel.embeddedEventLoop
        for byte in "GET / HT" {
            #expect(connection.send(String(byte)).isEmpty)
            loop.advanceTime(by: .seconds(1))
        }
        #expect(connection.isOpen)
        loop.advanceTime(by: .seconds(2))
        #expect(!connection.isOpen)
    }

    @Test func idleConnectionIsClosed() throws {
        let connection = try Connection()
        let loop = connection.channel.embeddedEventLoop
        #expect(connection.get("/").hasPrefix("HTTP/1.1 200 "))
        loop.advanceTime(by: RequestHandler.idleTimeout - .seconds(1))
        #expect(connection.get("/").hasPrefix("HTTP/1.1 200 "))
        loop.advanceTime(by: RequestHandler.idleTimeout)
        #expect(!connection.isOpen)
    }

    @Test func responseThatTakesTooLongEndsTheConnection() throws {
        let connection = try Connection()
        #expect(connection.get("/slow").isEmpty)
        connection.channel.embeddedEventLoop.advanceTime(by: RequestHandler.responseTimeout)
        #expect(!connection.isOpen)
        connection.content.pending.succeed(WebResponse(.ok, "text/plain", "late"))
        #expect(connection.output.isEmpty)
    }

    @Test func clientThatDoesNotReadIsDisconnected() throws {
        let connection = try Connection()
        let writes = UnreadWrites()
        try connection.channel.pipeline.syncOperations.addHandler(writes, position: .first)
        #expect(connection.get("/").isEmpty)
        connection.channel.embeddedEventLoop.advanceTime(by: RequestHandler.responseTimeout - .seconds(1))
        #expect(connection.isOpen)
        connection.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(!connection.isOpen)
    }

    @Test func failedContentIsAnError() throws {
        let connection = try Connection()
        #expect(connection.get("/slow").isEmpty)
        connection.content.pending.fail(ChannelError.eof)
        #expect(connection.output.hasPrefix("HTTP/1.1 500 "))
    }
}
