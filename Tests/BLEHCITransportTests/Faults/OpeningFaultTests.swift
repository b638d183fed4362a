import FaultInjection
import Glibc
import Testing

@testable import BLEHCITransport

@Suite("A fault of the system, while a transport is opened,", .timeLimit(.minutes(10)))
struct OpeningFaultTests {
    typealias Case = FaultCase<TransportError>

    // MARK: Sockets

    @Test(
        "makes the connection to a socket fail with its reason, or is overcome",
        arguments: [
            .init(Fault(.socket, .fails(EMFILE)), error: .connectionFailed("it", errno: EMFILE)),
            .init(Fault(.socket, .fails(ENFILE)), error: .connectionFailed("it", errno: ENFILE)),
            .init(Fault(.socket, .fails(ENOMEM)), error: .connectionFailed("it", errno: ENOMEM)),
            .init(Fault(.connect, .fails(EACCES)), error: .connectionFailed("it", errno: EACCES)),
            .init(Fault(.connect, .fails(ECONNREFUSED)), error: .connectionFailed("it", errno: ECONNREFUSED)),
            .init(Fault(.connect, .fails(EINTR), count: 3)),
            .init(Fault(.connect, .fails(EAGAIN), count: 3)),
            .init(Fault(.connect, .fails(EISCONN))),
            .init(Fault(.connect, .fails(EINPROGRESS))),
            .init(Fault(.connect, .fails(EINTR), count: 1), Fault(.connect, .fails(EALREADY), after: 1)),
            .init(Fault(.connect, .fails(EINPROGRESS)), Fault(.poll, .fails(EINTR), count: 3)),
            .init(Fault(.connect, .fails(EINPROGRESS)), Fault(.poll, .returns(0)), error: .connectTimedOut("it")),
            .init(
                Fault(.connect, .fails(EINPROGRESS)),
                Fault(.poll, .fails(ENOMEM)),
                error: .connectionFailed("it", errno: ENOMEM)
            ),
            .init(
                Fault(.connect, .fails(EINPROGRESS)),
                Fault(.getsockopt, .fails(ENOBUFS)),
                error: .connectionFailed("it", errno: ENOBUFS)
            ),
            .init(Fault(.connect, .fails(EINPROGRESS)), Fault(.close, .fails(EIO))),
        ] as [Case]
    )
    func connectingFailsWithItsReason(item: Case) throws {
        let listener = Listener.unix()
        guard case .unix(let path) = listener.specification else { return }
        item.run { _ = try SocketConnector(name: "it", timeout: .seconds(120)).connect(path: path) }
    }

    @Test("does not move its end if it is a step of the realtime clock")
    func connectingEndsAtItsTime() throws {
        let listener = Listener.unix()
        guard case .unix(let path) = listener.specification else { return }
        for seconds in [7200, -7200] {
            let item = Case(
                Fault(.connect, .fails(EAGAIN)),
                Fault(.clock, .isAhead(seconds: seconds)),
                error: .connectTimedOut("it")
            )
            item.run {
                #expect(abs(wallClock().tv_sec - time(nil)) > 3600)
                _ = try SocketConnector(name: "it", timeout: .milliseconds(1)).connect(path: path)
            }
        }
    }

    @Test(
        "makes the connection to a packet socket fail with its reason",
        arguments: [
            .init(Fault(.socket, .fails(EMFILE)), error: .connectionFailed("it", errno: EMFILE)),
            .init(Fault(.connect, .fails(EPROTOTYPE)), error: .connectionFailed("it", errno: EPROTOTYPE)),
        ] as [Case]
    )
    func connectingToAPacketSocketFailsWithItsReason(item: Case) throws {
        let listener = Listener.seqpacket()
        guard case .seqpacket(let path) = listener.specification else { return }
        item.run { _ = try SocketConnector(name: "it", timeout: .seconds(120)).connect(packetsAt: path) }
    }

    @Test(
        "on a TCP connection is its reason, or only makes it slower",
        arguments: [
            .init(Fault(.socket, .fails(EMFILE)), error: .connectionFailed("it", errno: EMFILE)),
            .init(Fault(.connect, .fails(ENETUNREACH)), error: .connectionFailed("it", errno: ENETUNREACH)),
            .init(Fault(.setsockopt, .fails(ENOPROTOOPT))),
        ] as [Case]
    )
    func tcpConnectionFailsWithItsReason(item: Case) throws {
        let listener = Listener.tcp()
        guard case .tcp(let host, let port) = listener.specification else { return }
        item.run { _ = try SocketConnector(name: "it", timeout: .seconds(120)).connect(host: host, port: port) }
    }

    @Test(
        "is not taken for an unknown host",
        arguments: [
            (.fails(EMFILE), .connectionFailed("it", errno: EMFILE)),
            (.returns(Int(EAI_MEMORY)), .connectionFailed("it", errno: ENOMEM)),
            (.returns(Int(EAI_AGAIN)), .hostLookupFailed("")), (.fails(EAGAIN), .hostLookupFailed("")),
            (.returns(Int(EAI_NONAME)), .unknownHost("")),
        ] as [(Fault.Outcome, TransportError)]
    )
    func failedLookupIsNotAnUnknownHost(outcome: Fault.Outcome, error: TransportError) {
        let host = "host-\(UInt64.random(in: 0 ... .max)).invalid"
        // The lookup is on another thread.
        let injection = FaultInjection(Fault(.getaddrinfo, outcome), at: .path(host))
        let error: TransportError =
            switch error {
            case .hostLookupFailed: .hostLookupFailed(host)
            case .unknownHost: .unknownHost(host)
            default: error
            }
        Case(error: error).run {
            _ = try SocketConnector(name: "it", timeout: .seconds(120)).connect(host: host, port: 1)
        }
        #expect(injection.uses > 0)
    }

    // MARK: HCI sockets

    @Test(
        "makes the opening of an adapter fail with its reason, or is overcome",
        arguments: [
            (.user, .init(Fault(.bind, .fails(EPERM)), error: .permissionDenied("the HCI socket of hci1"))),
            (.user, .init(Fault(.bind, .fails(ENODEV)), error: .noSuchAdapter(index: 1))),
            (.user, .init(Fault(.bind, .fails(ERFKILL)), error: .blockedByRFKill(index: 1))),
            (.user, .init(Fault(.bind, .fails(EIO)), error: .connectionFailed("hci1", errno: EIO))),
            (.user, .init(Fault(.bind, .fails(EBUSY)), Fault(.poll, .returns(0)), error: .adapterBusy(index: 1))),
            (
                .user,
                .init(
                    Fault(.bind, .fails(EBUSY), count: 3),
                    Fault(.bind, .returns(0), after: 3),
                    Fault(.poll, .fails(EINTR))
                )
            ),
            (.user, .init(Fault(.ioctl, .fails(EPERM)), Fault(.bind, .returns(0)))),
            (.raw, .init(Fault(.bind, .fails(ENETDOWN)), error: .adapterDown(index: 1))),
            (
                .raw,
                .init(
                    Fault(.bind, .returns(0)),
                    Fault(.setsockopt, .fails(EPERM)),
                    error: .permissionDenied("the HCI socket of hci1")
                )
            ),
            (
                .raw,
                .init(
                    Fault(.bind, .returns(0)),
                    Fault(.setsockopt, .returns(0), count: 1),
                    Fault(.setsockopt, .fails(ENOMEM), after: 1),
                    error: .connectionFailed("hci1", errno: ENOMEM)
                )
            ),
        ] as [(AdapterSpecification.Channel, Case)]
    )
    func openingAnAdapterFailsWithItsReason(channel: AdapterSpecification.Channel, item: Case) throws {
        let (own, other) = try makeSockets()
        let peer = Peer(descriptor: OwnedDescriptor(other))
        let socket = Fault(.socket, .returns(Int(own)))
        let trial = FaultRun([socket] + item.faults) {
            _ = try openHCISocket(index: 1, channel: channel, bringsDown: true)
        }
        #expect(trial.message == item.error.map { "\($0)" })
        #expect(trial.unused.isEmpty)
        // The socket is closed, whether the opening has failed or not.
        var buffer: [UInt8] = [0]
        #expect(read(peer.descriptor.number, into: &buffer, from: 0) == .success(0))
    }

    @Test(
        "on the socket of an adapter is reported",
        arguments: [
            (EMFILE, .connectionFailed("hci1", errno: EMFILE)), (EPERM, .permissionDenied("the HCI socket of hci1")),
            (EAFNOSUPPORT, .bluetoothUnavailable),
        ] as [(Int32, TransportError)]
    )
    func faultOfTheHCISocketIsReported(errno: Int32, error: TransportError) {
        Case(Fault(.socket, .fails(errno)), error: error).run {
            _ = try openHCISocket(index: 1, channel: .user, bringsDown: false)
        }
        let trial = FaultRun([Fault(.socket, .fails(errno))]) { AdapterInventory.read().socketError }
        #expect((try? trial.result.get()) == .hciSocket(errno: errno, index: 0))
    }

    // MARK: Cancelled openings

    @Test("is the last step of a cancelled opening, and no other adapter is tried", arguments: 0..<3)
    func cancelledOpeningDoesNotContinue(last: Int) throws {
        let (own, other) = try makeSockets()
        let peer = OwnedDescriptor(other)
        var inventory = AdapterInventory()
        inventory.adapters = [KernelAdapter(index: 0), KernelAdapter(index: 3)]
        let steps = [
            Fault(.socket, .returns(Int(own)), count: 1), Fault(.ioctl, .returns(0)), Fault(.bind, .fails(EBUSY)),
        ].map { FaultInjection($0, at: .thread) }
        let lastStep = steps[last]
        var options = TransportOptions()
        options.isCancelled = { lastStep.uses > 0 }
        let trial = FaultRun([Fault(.socket, .fails(EMFILE), after: 1)]) {
            _ = try AdapterSpecification.automatic.openCandidate(in: inventory, options: options)
        }
        for step in steps { step.end() }
        #expect(trial.message != nil)
        // The socket for the second adapter.
        #expect(trial.unused.map(\.call) == [.socket])
        #expect(steps.map(\.uses) == (0..<3).map { $0 <= last ? 1 : 0 })
        withExtendedLifetime(peer) {}
    }

    @Test("is the last attempt of a connection that is cancelled")
    func cancelledConnectionIsNotTriedAgain() throws {
        let listener = Listener.unix()
        guard case .unix(let path) = listener.specification else { return }
        let attempt = FaultInjection(Fault(.connect, .fails(EAGAIN)), at: .thread)
        Case(error: .connectionFailed("it", errno: ECANCELED)).run {
            _ = try SocketConnector(name: "it", timeout: .seconds(120), isCancelled: { attempt.uses > 0 })
                .connect(path: path)
        }
        #expect(attempt.uses == 1)
    }

    // MARK: Serial lines

    @Test(
        "makes the opening of a serial line fail with its reason, or is overcome",
        arguments: [
            (Fault(.open, .fails(EMFILE)), EMFILE), (Fault(.open, .fails(EACCES)), EACCES),
            (Fault(.open, .fails(EBUSY)), EBUSY), (Fault(.open, .fails(EINTR), count: 3), nil),
            (Fault(.tcgetattr, .fails(ENOTTY)), ENOTTY), (Fault(.tcsetattr, .fails(EIO)), EIO),
            (Fault(.tcgetattr, .fails(EIO), after: 1), EIO),
            // The line keeps the rate that it had.
            (Fault(.tcsetattr, .returns(0)), EINVAL),
            (Fault(.ioctl, .fails(ENOTTY)), ENOTTY), (Fault(.tcflush, .fails(EIO)), EIO),
        ] as [(Fault, Int32?)]
    )
    func openingASerialLineFailsWithItsReason(fault: Fault, errno: Int32?) throws {
        var (master, line) = (Int32(-1), Int32(-1))
        var name = [CChar](repeating: 0, count: 128)
        try #require(openpty(&master, &line, &name, nil, nil) == 0)
        let owners = (OwnedDescriptor(line), OwnedDescriptor(master))
        let path = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        Case(fault, error: errno.map { .serialLine(path, errno: $0) }).run {
            _ = try openSerialLine(path, rate: 115_200, usesFlowControl: false)
        }
        withExtendedLifetime(owners) {}
    }

    // MARK: The inventory

    @Test(
        "leaves out of the inventory what cannot be read",
        arguments: [
            (Fault(.opendir, .fails(EMFILE)), 0, true), (Fault(.readdir, .fails(EIO)), 0, true),
            (Fault(.closedir, .fails(EIO)), 1, true), (Fault(.open, .fails(EMFILE)), 1, false),
            (Fault(.read, .fails(EIO)), 1, false),
        ] as [(Fault, Int, Bool)]
    )
    func inventoryLeavesOutWhatCannotBeRead(fault: Fault, adapters: Int, canAdminister: Bool) throws {
        let folder = TemporaryFolder()
        for name in ["/sys", "/sys/class", "/sys/class/bluetooth", "/sys/class/bluetooth/hci0", "/proc", "/proc/self"] {
            try #require(mkdir(folder.path + name, 0o700) == 0)
        }
        let status = OwnedDescriptor(open(folder.path + "/proc/self/status", O_WRONLY | O_CREAT, 0o600))
        _ = try write(status.number, Array("CapEff:\t0000000000003000\n".utf8).rawSpan).get()
        let trial = FaultRun([fault]) { AdapterInventory(fileSystem: folder.path) }
        let inventory = try trial.result.get()
        #expect(trial.unused.isEmpty)
        #expect(trial.leakedDescriptors == 0)
        #expect(inventory.adapters.count == adapters)
        #expect(inventory.canAdministerNetwork == canAdminister)
    }

    @Test("leaves out of the inventory what the kernel does not answer")
    func inventoryLeavesOutWhatTheKernelDoesNotAnswer() throws {
        let (own, other) = try makeSockets()
        let peer = OwnedDescriptor(other)
        let trial = FaultRun([Fault(.socket, .returns(Int(own))), Fault(.ioctl, .fails(EIO))]) {
            AdapterInventory.read()
        }
        #expect(try trial.result.get().socketError == nil)
        #expect(trial.unused.isEmpty)
        var buffer: [UInt8] = [0]
        #expect(read(peer.number, into: &buffer, from: 0) == .success(0))
    }

    // MARK: Texts

    @Test(
        "is explained in one line with its value and what to do",
        arguments: [
            (
                .connectionFailed("tcp:h:1", errno: EMFILE),
                "cannot connect to tcp:h:1: Too many open files; raise the limit of open files with `ulimit -n`"
            ),
            (
                .serialLine("/dev/ttyS0", errno: EACCES),
                "cannot use the serial line /dev/ttyS0: Permission denied; add the user to the group that owns it"
            ),
            (
                .serialLine("/dev/ttyS0", errno: EINVAL),
                "cannot use the serial line /dev/ttyS0: Invalid argument; the device does not support this rate; "
                    + "choose another one"
            ),
            (
                .captureFile("/c", errno: ENOSPC),
                "cannot write the capture file /c: No space left on device; free space or choose another path"
            ),
            (
                .captureFile("/c", errno: EFBIG),
                "cannot write the capture file /c: File too large; raise the limit for the size of files with "
                    + "`ulimit -f`, or choose another path"
            ),
            (
                .readFailed(errno: ENOMEM),
                "reading from the controller failed: Cannot allocate memory; the machine has no memory left; close other "
                    + "programs"
            ),
        ] as [(TransportError, String)]
    )
    func errorSaysWhatFailedAndWhatToDo(error: TransportError, text: String) {
        #expect(error.description == text)
    }
}
