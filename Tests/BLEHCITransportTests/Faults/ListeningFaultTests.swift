import Dispatch
import FaultInjection
import Glibc
import Testing

@testable import BLEHCITransport

@Suite("A fault of the system, while a controller listens,", .timeLimit(.minutes(10)))
struct ListeningFaultTests {
    typealias Case = FaultCase<ListeningError>

    private let folder = TemporaryFolder()

    private var address: ListeningAddress { .unix(path: folder.path + "/hci") }

    /// The error for a path that a table does not know.
    private func here(_ error: ListeningError?) -> ListeningError? {
        switch error {
        case .failed(_, let errno): .failed(address, errno: errno)
        case .permissionDenied: .permissionDenied(address)
        case .addressInUse: .addressInUse(address)
        default: error
        }
    }

    private func check(_ item: Case, _ faults: [Fault]) {
        let trial = FaultRun(faults) { _ = try ListeningSocket(address) }
        #expect(trial.message == here(item.error).map { "\($0)" })
        #expect(trial.unused.isEmpty)
        #expect(trial.leakedDescriptors == 0)
    }

    private static let any = ListeningAddress.unix(path: "")

    @Test(
        "makes listening on a path fail with its reason, and leaves no socket file",
        arguments: [
            .init(Fault(.socket, .fails(EMFILE)), error: .failed(any, errno: EMFILE)),
            .init(Fault(.bind, .fails(EACCES)), error: .permissionDenied(any)),
            .init(Fault(.bind, .fails(ENOSPC)), error: .failed(any, errno: ENOSPC)),
            .init(Fault(.listen, .fails(ENOBUFS)), error: .failed(any, errno: ENOBUFS)),
        ] as [Case]
    )
    func listeningOnAPathFailsWithItsReason(item: Case) {
        check(item, item.faults)
        #expect(access(folder.path + "/hci", F_OK) != 0)
    }

    @Test("leaves a socket file that cannot be identified, because it may be the file of another process")
    func fileThatCannotBeIdentifiedIsKept() {
        check(Case(error: .failed(address, errno: EIO)), [Fault(.lstat, .fails(EIO))])
        #expect(access(folder.path + "/hci", F_OK) == 0)
        // The file is now that of an ended program.
        check(Case(), [])
    }

    @Test("is overcome if a signal interrupts a call", arguments: [Fault.Call.bind, .listen])
    func interruptedCallIsRepeated(call: Fault.Call) {
        check(Case(), [Fault(call, .fails(EINTR), count: 3)])
    }

    @Test(
        "keeps the socket file of another program, or of an ended one, and says why",
        arguments: [
            .init(Fault(.socket, .fails(EMFILE), after: 1), error: .failed(any, errno: EMFILE)),
            .init(Fault(.connect, .fails(EACCES)), error: .addressInUse(any)),
            .init(Fault(.unlink, .fails(EPERM)), error: .permissionDenied(any)),
            .init(Fault(.unlink, .fails(EIO)), error: .failed(any, errno: EIO)),
        ] as [Case]
    )
    func existingSocketFileIsKept(item: Case) throws {
        let dead = try #require(SocketAddress(path: folder.path + "/hci"))
        let ended = OwnedDescriptor(socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
        try #require(dead.bind(ended.number) == 0)
        check(item, item.faults)
        #expect(access(folder.path + "/hci", F_OK) == 0)
        check(Case(), [])
    }

    @Test(
        "makes listening on a port fail with its reason, or is overcome",
        arguments: [
            .init(Fault(.socket, .fails(EMFILE)), error: .failed(.tcp(host: "127.0.0.1", port: 0), errno: EMFILE)),
            .init(Fault(.bind, .fails(EACCES)), error: .permissionDenied(.tcp(host: "127.0.0.1", port: 0))),
            .init(Fault(.listen, .fails(EADDRINUSE)), error: .addressInUse(.tcp(host: "127.0.0.1", port: 0))),
            .init(
                Fault(.getsockname, .fails(ENOBUFS)),
                error: .failed(.tcp(host: "127.0.0.1", port: 0), errno: ENOBUFS)
            ),
            .init(Fault(.getaddrinfo, .returns(Int(EAI_AGAIN))), error: .hostLookupFailed("127.0.0.1")),
            .init(Fault(.getaddrinfo, .fails(EMFILE)), error: .failed(.tcp(host: "127.0.0.1", port: 0), errno: EMFILE)),
            .init(Fault(.setsockopt, .fails(ENOPROTOOPT))),
        ] as [Case]
    )
    func listeningOnAPortFailsWithItsReason(item: Case) {
        item.run { _ = try ListeningSocket(.tcp(host: "127.0.0.1", port: 0)) }
    }

    @Test("on one address of a host leaves the others")
    func nextAddressOfTheHostIsUsed() throws {
        let addresses = try ["127.0.0.1", "127.0.0.2"].flatMap { try SocketAddress.all(ofHost: $0, port: 0).get() }
        try #require(addresses.count == 2)
        let trial = FaultRun([Fault(.socket, .fails(EAFNOSUPPORT), count: 1)]) {
            _ = try ListeningSocket.tcp("localhost", 0, on: addresses)
        }
        #expect(trial.message == nil)
        #expect(trial.unused.isEmpty)
    }

    @Test("that leaves no descriptor for a connection delays it", arguments: [EMFILE, ENFILE, EINTR, ECONNABORTED])
    func connectionIsAcceptedLater(errno: Int32) async throws {
        let queue = DispatchQueue(label: "listening")
        let socket = try ListeningSocket(address)
        let injection = FaultInjection(
            Fault(.accept, .fails(errno), count: 3),
            at: .descriptor(socket.descriptor.number)
        )
        let listener = StreamListener(socket, loop: LoopQueue(queue, linger: nil), options: TransportOptions())
        let (transports, continuation) = AsyncStream<any Transport>.makeStream()
        queue.async { listener.start { continuation.yield($0) } }
        let descriptor = try SocketConnector(name: "it", timeout: .seconds(120)).connect(path: folder.path + "/hci")
        var found = transports.makeAsyncIterator()
        #expect(await found.next() != nil)
        #expect(injection.uses == 3)
        queue.sync { listener.close() }
        withExtendedLifetime(descriptor) {}
    }

    @Test("on a new connection closes it", arguments: [0, 1])
    func newConnectionIsClosed(place: Int) throws {
        let socket = try ListeningSocket(address)
        let host = try SocketConnector(name: "it", timeout: .seconds(120)).connect(path: folder.path + "/hci")
        var result: Int32 = 0
        let trial = FaultRun([Fault(.fcntl, .fails(EIO), after: place)]) {
            result = ListeningSocket.accept(socket.descriptor)
        }
        #expect(result == -EIO)
        #expect(trial.unused.isEmpty)
        #expect(trial.leakedDescriptors == 0)
        withExtendedLifetime(host) {}
    }

    @Test("at the end does not keep the socket open")
    func listenerEndsDespiteAFault() throws {
        let queue = DispatchQueue(label: "listening")
        let socket = try ListeningSocket(address)
        let injection = FaultInjection(Fault(.shutdown, .fails(EIO)), at: .descriptor(socket.descriptor.number))
        let listener = StreamListener(socket, loop: LoopQueue(queue, linger: nil), options: TransportOptions())
        queue.sync { listener.close() }
        #expect(injection.uses == 1)
        #expect(access(folder.path + "/hci", F_OK) != 0)
    }
}
