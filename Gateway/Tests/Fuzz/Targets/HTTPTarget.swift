import NIOCore
import NIOEmbedded

@testable import GatewayTestSupport
@testable import GatewayWeb

/// Runs a script against one connection to the web server, whose content is made at once or later.
///
/// The low three bits of an action select what happens; see ``perform(_:)``.
final class HTTPFuzzing {
    private static let pieceLimit = 64
    /// Longer than all deadlines of a connection together.
    private static let longTime = TimeAmount.seconds(600)

    private let channel = EmbeddedChannel()
    private let content: TestContent
    private var hasAnswered = false

    static func run(_ script: FuzzScript) {
        let fuzzing = HTTPFuzzing()
        for step in script.steps { fuzzing.perform(step) }
        fuzzing.finish()
    }

    private init() {
        content = TestContent(channel.eventLoop)
        do {
            try WebServer.configure(channel, content: content, hosts: HostPolicy(names: ["gw.example.org"]))
            let address = try SocketAddress(ipAddress: "192.0.2.1", port: 1)
            channel.connect(to: address, promise: nil)
        } catch {
            fatalError("the setup of the fuzz target has failed: \(error)")
        }
        channel.embeddedEventLoop.run()
    }

    private func perform(_ step: FuzzScript.Step) {
        let wasOpen = channel.isActive
        switch step.action & 7 {
        case 0:
            for octet in step.octets.prefix(Self.pieceLimit) { receive([octet]) }
            receive(Array(step.octets.dropFirst(Self.pieceLimit)))
        case 1: channel.embeddedEventLoop.advanceTime(by: .seconds(Int64(step.octets.first ?? 1)))
        case 2: content.pending.succeed(WebResponse(.ok, "text/plain", ByteBuffer(bytes: step.octets)))
        case 3: content.pending.fail(ChannelError.eof)
        default: receive(step.octets)
        }
        takeOutput(wasOpen: wasOpen)
    }

    private func receive(_ octets: [UInt8]) {
        guard channel.isActive, !octets.isEmpty else { return }
        // The server ends a connection with an error in the request, which is an error here, too.
        _ = try? channel.writeInbound(ByteBuffer(bytes: octets))
    }

    /// Reads what the server has written.
    private func takeOutput(wasOpen: Bool) {
        channel.embeddedEventLoop.run()
        var output: [UInt8] = []
        while let bytes = try? channel.readOutbound(as: ByteBuffer.self) { output += bytes.readableBytesView }
        guard !output.isEmpty else { return }
        require(wasOpen, "\(output.count) bytes after the end of the connection")
        require(hasAnswered || output.starts(with: "HTTP/1.1 ".utf8), "an answer that is none of HTTP")
        hasAnswered = true
    }

    /// No connection stays open without requests.
    private func finish() {
        let wasOpen = channel.isActive
        channel.embeddedEventLoop.advanceTime(by: Self.longTime)
        takeOutput(wasOpen: wasOpen)
        require(!channel.isActive, "a connection without requests is open after \(Self.longTime.nanoseconds) ns")
        content.pending.fail(ChannelError.alreadyClosed)
        _ = try? channel.finish(acceptAlreadyClosed: true)
    }
}
