import Dispatch
import Glibc
import Testing

@testable import BLEHCITransport

@Suite("A stream listener", .timeLimit(.minutes(10)))
struct StreamListenerTests {
    enum Family: CaseIterable {
        case unix, tcp
    }

    private let queue = DispatchQueue(label: "listening")
    private let folder = TemporaryFolder()

    private var loop: LoopQueue { LoopQueue(queue, linger: nil) }

    private var path: String { folder.path + "/hci" }

    private func address(_ family: Family) -> ListeningAddress {
        family == .unix ? .unix(path: path) : .tcp(host: "127.0.0.1", port: 0)
    }

    /// A started listener, and the transports that it creates.
    private func listen(_ address: ListeningAddress) async throws -> (StreamListener, Connections) {
        let listener = try await StreamListener.open(address, on: loop)
        let (transports, continuation) = AsyncStream<any Transport>.makeStream()
        queue.async { listener.start { continuation.yield($0) } }
        return (listener, Connections(transports: transports, queue: queue))
    }

    private struct Connections {
        let transports: AsyncStream<any Transport>
        let queue: DispatchQueue

        func next() async throws -> Probe {
            for await transport in transports { return Probe(transport, on: queue) }
            throw CancellationError()
        }
    }

    /// The host's end of a connection.
    private func connect(to listener: StreamListener) async throws -> Probe {
        let hostQueue = DispatchQueue(label: "host")
        let specification = try AdapterSpecification(parsing: "\(listener.address)")
        // Long enough for a busy machine.
        let options = TransportOptions(connectTimeout: .seconds(120))
        return Probe(try await specification.open(on: hostQueue, options: options), on: hostQueue)
    }

    @Test(arguments: Family.allCases)
    func eachConnectionGetsATransportThatWorksInBothDirections(family: Family) async throws {
        let (listener, connections) = try await listen(address(family))
        for number in 0..<3 {
            let host = try await connect(to: listener)
            let controller = try await connections.next()
            await host.send([Sample.reset, Sample.acl, Sample.iso, Sample.synchronous])
            #expect(
                await controller.next(4) == [
                    .packet(Sample.reset), .packet(Sample.acl), .packet(Sample.iso), .packet(Sample.synchronous),
                ]
            )
            await controller.send([Sample.commandComplete, Sample.acl])
            #expect(await host.next(2) == [.packet(Sample.commandComplete), .packet(Sample.acl)])
            await host.perform { $0.close() }
            #expect(await controller.next() == .ended(.closedByPeer), "connection \(number)")
        }
        queue.sync { listener.close() }
    }

    @Test(
        arguments: Family.allCases,
        [Array("GET / HTTP/1.1\r\n".utf8), Sample.commandComplete, [0x00], [0xFF, 0x03, 0x0C, 0x00]] as [[UInt8]]
    )
    func invalidPacketsEndOnlyTheTransportOfTheirHost(family: Family, octets: [UInt8]) async throws {
        let (listener, connections) = try await listen(address(family))
        let good = try await connect(to: listener)
        let goodEnd = try await connections.next()
        let bad = try await connect(to: listener)
        let badEnd = try await connections.next()
        await bad.send([Sample.reset, octets])
        #expect(await badEnd.next(2) == [.packet(Sample.reset), .ended(.brokenStream(octet: octets[0]))])
        #expect(await bad.next() == .ended(.closedByPeer))
        await good.send([Sample.reset])
        #expect(await goodEnd.next() == .packet(Sample.reset))
        queue.sync { listener.close() }
    }

    @Test(arguments: Family.allCases)
    func closedListenerRefusesConnectionsAndKeepsExistingOnes(family: Family) async throws {
        let (listener, connections) = try await listen(address(family))
        let host = try await connect(to: listener)
        let controller = try await connections.next()
        queue.sync { listener.close() }
        await #expect(throws: TransportError.self) { try await connect(to: listener) }
        await host.send([Sample.reset])
        #expect(await controller.next() == .packet(Sample.reset))
    }

    @Test(arguments: Family.allCases)
    func connectionsMadeBeforeTheStartAreAccepted(family: Family) async throws {
        let listener = try await StreamListener.open(address(family), on: loop)
        let host = try await connect(to: listener)
        await host.send([Sample.reset])
        let (transports, continuation) = AsyncStream<any Transport>.makeStream()
        queue.async { listener.start { continuation.yield($0) } }
        let controller = try await Connections(transports: transports, queue: queue).next()
        #expect(await controller.next() == .packet(Sample.reset))
    }

    @Test func usedPortIsReported() async throws {
        let listener = try await StreamListener.open(.tcp(host: "127.0.0.1", port: 0), on: loop)
        guard case .tcp("127.0.0.1", let port) = listener.address else {
            Issue.record("it listens on \(listener.address)")
            return
        }
        #expect(port > 0)
        await #expect(throws: ListeningError.addressInUse(listener.address)) {
            try await StreamListener.open(listener.address, on: loop)
        }
    }

    @Test(
        arguments: [true, false]
    )
    func socketFileInUseIsKeptAndTheOwnOneIsRemoved(isClosed: Bool) async throws {
        var listener: StreamListener? = try await StreamListener.open(.unix(path: path), on: loop)
        await #expect(throws: ListeningError.addressInUse(.unix(path: path))) {
            try await StreamListener.open(.unix(path: path), on: loop)
        }
        #expect(access(path, F_OK) == 0)
        if isClosed { queue.sync { [listener] in listener?.close() } }
        listener = nil
        #expect(access(path, F_OK) != 0)
    }

    @Test func socketFileWithoutAListenerIsReplaced() async throws {
        let dead = SocketAddress(path: path)
        let descriptor = OwnedDescriptor(socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
        #expect(dead?.bind(descriptor.number) == 0)
        let (listener, connections) = try await listen(.unix(path: path))
        let host = try await connect(to: listener)
        await host.send([Sample.reset])
        let controller = try await connections.next()
        #expect(await controller.next() == .packet(Sample.reset))
    }

    @Test func otherFilesAndReplacedSocketsAreLeftAlone() async throws {
        let file = folder.path + "/file"
        close(creat(file, 0o600))
        await #expect(throws: ListeningError.occupied(path: file)) {
            try await StreamListener.open(.unix(path: file), on: loop)
        }
        #expect(access(file, F_OK) == 0)

        let first = try await StreamListener.open(.unix(path: path), on: loop)
        unlink(path)
        let second = try await StreamListener.open(.unix(path: path), on: loop)
        queue.sync { first.close() }
        #expect(access(path, F_OK) == 0)
        queue.sync { second.close() }
        #expect(access(path, F_OK) != 0)
    }

    @Test func listeningFailureNamesItsReason() async {
        await #expect(throws: ListeningError.noFolder(path: "/nonexistent/hci")) {
            try await StreamListener.open(.unix(path: "/nonexistent/hci"), on: loop)
        }
        await #expect(throws: ListeningError.elsewhere(host: "192.0.2.1")) {
            try await StreamListener.open(.tcp(host: "192.0.2.1", port: 0), on: loop)
        }
        await #expect(throws: ListeningError.unknownHost(hostWithoutAddress)) {
            try await StreamListener.open(.tcp(host: hostWithoutAddress, port: 0), on: loop)
        }
        let long = ListeningAddress.unix(path: String(repeating: "x", count: 200))
        await #expect(throws: ListeningError.failed(long, errno: ENAMETOOLONG)) {
            try await StreamListener.open(long, on: loop)
        }
    }

    @Test(
        arguments: [
            (.tcp(host: "::1", port: 80), EACCES, "no permission for port 80; choose one from 1024 on"),
            (
                .unix(path: "/run/hci"), EACCES,
                "no permission to make the socket /run/hci; choose a folder that you may write to"
            ),
            (
                .unix(path: "/etc/passwd/hci"), ENOTDIR,
                "the folder of /etc/passwd/hci does not exist; make it or choose another path"
            ),
            (
                .tcp(host: "127.0.0.1", port: 6402), EADDRINUSE,
                "port 6402 is in use; stop the program that has it, choose another, or 0 for any that is free"
            ),
            (
                .tcp(host: "::1", port: 1), ENOBUFS,
                "cannot listen on tcp:[::1]:1: No buffer space available; the machine has no memory left; close other "
                    + "programs"
            ),
        ] as [(ListeningAddress, Int32, String)]
    )
    func errnoIsExplainedInALineWithAdvice(address: ListeningAddress, errno: Int32, words: String) {
        #expect(ListeningError(address, errno: errno).description == words)
    }
}

@Suite("A listening address")
struct ListeningAddressTests {
    @Test(
        arguments: [
            ("unix:/tmp/hci", .unix(path: "/tmp/hci")), ("tcp:127.0.0.1:6402", .tcp(host: "127.0.0.1", port: 6402)),
            ("tcp:localhost:0", .tcp(host: "localhost", port: 0)), ("tcp:[::1]:0", .tcp(host: "::1", port: 0)),
        ] as [(String, ListeningAddress)]
    )
    func validAddressIsParsedAndWrittenInTheSameForm(text: String, address: ListeningAddress) throws {
        #expect(try ListeningAddress(parsing: text) == address)
        #expect(address.description == text)
    }

    @Test(
        arguments: [
            ("", "use unix:PATH or tcp:HOST:PORT"), ("hci0", "use unix:PATH or tcp:HOST:PORT"),
            ("virtual", "use unix:PATH or tcp:HOST:PORT"),
            ("unix:", "unix: needs a path, as in unix:/tmp/bt-server-le"),
            ("tcp:6402", "tcp: needs a host and a port from 0 to 65535, as in tcp:127.0.0.1:6402"),
            ("tcp:127.0.0.1:65536", "tcp: needs a host and a port from 0 to 65535, as in tcp:127.0.0.1:6402"),
            ("tcp:::1:0", "an IPv6 address stands in brackets, as in tcp:[::1]:6402"),
        ]
    )
    func invalidAddressIsRefusedWithTheReason(text: String, advice: String) {
        #expect(throws: ListeningAddressError(text: text, advice: advice)) { try ListeningAddress(parsing: text) }
    }
}
