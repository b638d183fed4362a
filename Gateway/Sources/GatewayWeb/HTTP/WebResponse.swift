import NIOCore
import NIOHTTP1

/// A response of the web server.
struct WebResponse: Sendable {
    var status: HTTPResponseStatus
    var contentType: String
    var body: ByteBuffer
    var additionalHeaders: [(String, String)] = []

    init(_ status: HTTPResponseStatus = .ok, _ contentType: String, _ body: ByteBuffer) {
        self.status = status
        self.contentType = contentType
        self.body = body
    }

    init(_ status: HTTPResponseStatus = .ok, _ contentType: String, _ text: String) {
        self.init(status, contentType, ByteBuffer(string: text))
    }

    /// An error, with a line for people.
    static func failure(_ status: HTTPResponseStatus, _ text: String) -> WebResponse {
        WebResponse(status, "text/plain; charset=utf-8", text + "\n")
    }

    /// The fields of the header, without those about the connection.
    var headers: HTTPHeaders {
        var headers = HTTPHeaders([
            ("Content-Type", contentType),
            ("Content-Length", "\(body.readableBytes)"),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Frame-Options", "DENY"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Permissions-Policy", "camera=(), geolocation=(), microphone=(), bluetooth=()"),
            ("Content-Security-Policy", Self.contentSecurityPolicy),
        ])
        for (name, value) in additionalHeaders { headers.add(name: name, value: value) }
        return headers
    }

    /// The page can load scripts, styles and data from this server only. Nothing inside the page is executed.
    private static let contentSecurityPolicy = """
        default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; \
        form-action 'none'; frame-ancestors 'none'
        """
}

/// Content that the web server has, by its path.
protocol WebContent: Sendable {
    /// What the content is, with its verb: the begin of a sentence.
    var name: String { get }

    /// Whether responses depend on nothing but numbers, so that any Host field is accepted.
    func acceptsAnyHost(path: String) -> Bool

    /// Returns the response for a path; nil if there is no such content.
    func response(path: String, on eventLoop: any EventLoop) -> EventLoopFuture<WebResponse>?
}
