import NIOCore

@testable import GatewayWeb

/// Content of a web server that is made at once, or when a promise is fulfilled.
///
/// | path | content |
/// |---|---|
/// | `/`, `/open` | a text; the second one for any Host field |
/// | `/slow` | what ``pending`` is fulfilled with |
final class TestContent: WebContent {
    let pending: EventLoopPromise<WebResponse>

    init(_ eventLoop: any EventLoop) {
        pending = eventLoop.makePromise()
    }

    var name: String { "the content is" }

    func acceptsAnyHost(path: String) -> Bool { path == "/open" }

    func response(path: String, on eventLoop: any EventLoop) -> EventLoopFuture<WebResponse>? {
        switch path {
        case "/", "/open": eventLoop.makeSucceededFuture(WebResponse(.ok, "text/plain", "content"))
        case "/slow": pending.futureResult
        default: nil
        }
    }
}
