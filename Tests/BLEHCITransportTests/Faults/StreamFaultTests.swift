import BLEByteCoding
import Dispatch
import FaultInjection
import Glibc
import Testing

@testable import BLEHCITransport

@Suite("A fault of the system, on an open transport,", .timeLimit(.minutes(10)))
struct StreamFaultTests {
    typealias Kind = DescriptorTransport.Kind

    /// A transport on one end of a socket pair, the number of its descriptor, and the other end.
    private func open(
        _ kind: Kind,
        linger: Duration? = nil,
        options: TransportOptions = TransportOptions()
    ) throws -> (Probe, Int32, Peer) {
        let (own, other) = try makeSockets(preservingPackets: kind == .seqpacket || kind == hci || kind == raw)
        // The peer waits.
        try #require(fcntl(other, F_SETFL, 0) == 0)
        let queue = DispatchQueue(label: "faults")
        let transport = DescriptorTransport(
            OwnedDescriptor(own),
            kind: kind,
            loop: LoopQueue(queue, linger: linger),
            options: options
        )
        return (Probe(transport, on: queue), own, Peer(descriptor: OwnedDescriptor(other)))
    }

    private static let hci = Kind.hci(index: 1, channel: .user)
    private static let raw = Kind.hci(index: 1, channel: .raw)
    private var hci: Kind { Self.hci }
    private var raw: Kind { Self.raw }

    @Test(
        "ends it with its reason while it reads",
        arguments: [
            (.unix, .read, ECONNRESET, .closedByPeer), (.tcp, .read, ECONNRESET, .closedByPeer),
            (.tcp, .read, ETIMEDOUT, .readFailed(errno: ETIMEDOUT)), (.unix, .read, EIO, .readFailed(errno: EIO)),
            (.unix, .read, ENOMEM, .readFailed(errno: ENOMEM)), (.seqpacket, .read, ECONNRESET, .closedByPeer),
            (.serial, .read, EIO, .closedByPeer), (.serial, .read, ENXIO, .readFailed(errno: ENXIO)),
            (hci, .read, ENETDOWN, .adapterDown(index: 1)), (hci, .read, ENODEV, .adapterRemoved(index: 1)),
            (hci, .read, EPIPE, .adapterRemoved(index: 1)), (raw, .recvmsg, ENETDOWN, .adapterDown(index: 1)),
            (raw, .recvmsg, ENOMEM, .readFailed(errno: ENOMEM)),
        ] as [(Kind, Fault.Call, Int32, TransportError)]
    )
    func readingFaultEndsItWithItsReason(kind: Kind, call: Fault.Call, errno: Int32, error: TransportError) async throws
    {
        let (probe, descriptor, peer) = try open(kind)
        let injection = FaultInjection(Fault(call, .fails(errno)), at: .descriptor(descriptor))
        peer.write(Sample.commandComplete)
        #expect(await probe.next() == .ended(error))
        #expect(injection.uses == 1)
        injection.end()
        // Its descriptor is closed.
        #expect(await peer.readOnce().isEmpty)
    }

    @Test(
        "ends it with its reason while it writes",
        arguments: [
            (.unix, .send, EPIPE, .closedByPeer), (.tcp, .send, ECONNRESET, .closedByPeer),
            (.unix, .send, ENOBUFS, .writeFailed(errno: ENOBUFS)), (.tcp, .send, ENOMEM, .writeFailed(errno: ENOMEM)),
            (.seqpacket, .send, EMSGSIZE, .writeFailed(errno: EMSGSIZE)), (.serial, .write, EIO, .closedByPeer),
            (hci, .write, ENETDOWN, .adapterDown(index: 1)), (hci, .write, ENXIO, .adapterRemoved(index: 1)),
            (raw, .write, EPERM, .writeFailed(errno: EPERM)), (.serial, .write, ENOSPC, .writeFailed(errno: ENOSPC)),
        ] as [(Kind, Fault.Call, Int32, TransportError)]
    )
    func writingFaultEndsItWithItsReason(kind: Kind, call: Fault.Call, errno: Int32, error: TransportError) async throws
    {
        let (probe, descriptor, peer) = try open(kind)
        let injection = FaultInjection(Fault(call, .fails(errno)), at: .descriptor(descriptor))
        await probe.send([Sample.reset])
        #expect(await probe.next() == .ended(error))
        #expect(injection.uses == 1)
        injection.end()
        #expect(await peer.readOnce().isEmpty)
    }

    @Test(
        "is overcome if a signal interrupts a call, or the system transfers less or nothing yet",
        arguments: [
            (.unix, Fault(.read, .fails(EINTR), count: 3)), (.unix, Fault(.read, .transfers(1))),
            (.tcp, Fault(.read, .transfers(3))), (.tcp, Fault(.setsockopt, .fails(ENOPROTOOPT))),
            (.serial, Fault(.read, .fails(EINTR), count: 3)), (hci, Fault(.read, .fails(EINTR), count: 3)),
            (.unix, Fault(.send, .fails(EINTR), count: 3)), (.unix, Fault(.send, .transfers(1))),
            (.unix, Fault(.send, .fails(EAGAIN), count: 1)), (.serial, Fault(.write, .fails(EAGAIN), count: 1)),
            (.serial, Fault(.write, .transfers(2))), (.seqpacket, Fault(.send, .fails(EAGAIN), count: 1)),
            (hci, Fault(.write, .fails(EINTR), count: 3)), (hci, Fault(.write, .fails(EAGAIN), count: 1)),
        ] as [(Kind, Fault)]
    )
    func interruptedAndShortTransfersAreContinued(kind: Kind, fault: Fault) async throws {
        let (probe, descriptor, peer) = try open(kind)
        let injection = FaultInjection(fault, at: .descriptor(descriptor))
        await probe.send([Sample.reset, Sample.acl])
        if kind == .seqpacket || kind == hci {
            #expect(await peer.readOnce() == Sample.reset)
            #expect(await peer.readOnce() == Sample.acl)
        } else {
            #expect(await peer.read(count: Sample.reset.count + Sample.acl.count) == Sample.reset + Sample.acl)
        }
        for packet in Sample.all.prefix(3) { peer.write(packet) }
        #expect(await probe.next(3) == Sample.all.prefix(3).map { .packet($0) })
        #expect(injection.uses > 0)
        await probe.perform { $0.close() }
    }

    @Test("that leaves a part of a packet, whose rest cannot wait, ends it without another byte")
    func nothingFollowsAPartOfAPacket() async throws {
        var options = TransportOptions()
        options.sharedBacklog = BacklogBudget(limit: 0)
        let (probe, descriptor, peer) = try open(.unix, options: options)
        let injection = FaultInjection(Fault(.send, .transfers(1), count: 1), at: .descriptor(descriptor))
        await probe.send([Sample.acl, Sample.reset])
        #expect(await probe.next() == .ended(.overflow))
        #expect(injection.uses == 1)
        #expect(await peer.readOnce() == [Sample.acl[0]])
        #expect(await peer.readOnce().isEmpty)
    }

    @Test("closes its descriptor once, whatever `close` reports", arguments: [EINTR, EIO])
    func closeFaultIsNotRepeated(errno: Int32) async throws {
        let (probe, descriptor, peer) = try open(.unix)
        let injection = FaultInjection(Fault(.close, .fails(errno), count: 1), at: .descriptor(descriptor))
        await probe.perform { $0.close() }
        #expect(await peer.readOnce().isEmpty)
        #expect(injection.uses == 1)
    }

    @Test("does not acknowledge bytes over TCP that it did not receive")
    func readWithoutBytesIsNotAcknowledged() async throws {
        let (probe, descriptor, peer) = try open(.tcp)
        let acknowledgments = FaultInjection(Fault(.setsockopt, .returns(0)), at: .descriptor(descriptor))
        let reading = FaultInjection(Fault(.read, .fails(EAGAIN), count: 1), at: .descriptor(descriptor))
        peer.write(Sample.commandComplete)
        #expect(await probe.next() == .packet(Sample.commandComplete))
        // The turn has ended when this returns.
        await probe.perform { $0.close() }
        #expect(reading.uses == 1 && acknowledgments.uses == 1)
    }

    @Test("acknowledges bytes received over TCP at once if the answer could not be sent")
    func blockedAnswerDoesNotAcknowledge() async throws {
        let (own, other) = try makeSockets()
        // The peer waits.
        try #require(fcntl(other, F_SETFL, 0) == 0)
        let peer = Peer(descriptor: OwnedDescriptor(other))
        let loop = LoopQueue(DispatchQueue(label: "faults"), linger: nil)
        let transport = DescriptorTransport(OwnedDescriptor(own), kind: .tcp, loop: loop)
        let acknowledgments = FaultInjection(Fault(.setsockopt, .returns(0)), at: .descriptor(own))
        let sending = FaultInjection(Fault(.send, .fails(EAGAIN), count: 1), at: .descriptor(own))
        loop.async { transport.start(onPacket: { _ in transport.send(Sample.reset) }, onEnd: { _ in }) }
        peer.write(Sample.commandComplete)
        #expect(await peer.read(count: Sample.reset.count) == Sample.reset)
        #expect(sending.uses == 1 && acknowledgments.uses == 1)
        peer.write(Sample.commandComplete)
        #expect(await peer.read(count: Sample.reset.count) == Sample.reset)
        await withCheckedContinuation { continuation in
            loop.async {
                transport.close()
                continuation.resume()
            }
        }
        // The second answer carried the acknowledgment.
        #expect(acknowledgments.uses == 1)
    }

    // MARK: The watch for errors

    /// Then only the removal of an idle adapter is noticed late.
    @Test(
        "that prevents the watch for errors of an HCI socket prevents no packet",
        arguments: [Fault(.epollCreate, .fails(EMFILE), count: 1), Fault(.epollControl, .fails(ENOMEM), count: 1)]
    )
    func hciSocketWithoutAWatchTransfersPackets(fault: Fault) async throws {
        let (own, other) = try makeSockets(preservingPackets: true)
        let peer = Peer(descriptor: OwnedDescriptor(other))
        let queue = DispatchQueue(label: "faults")
        let transport = DescriptorTransport(
            OwnedDescriptor(own),
            kind: .hci(index: 1, channel: .user),
            loop: LoopQueue(queue, linger: nil)
        )
        let (packets, continuation) = AsyncStream<[UInt8]>.makeStream()
        let trial = queue.sync {
            FaultRun([fault]) {
                transport.start(onPacket: { continuation.yield([UInt8](copying: $0)) }, onEnd: { _ in })
            }
        }
        #expect(trial.unused.isEmpty)
        #expect(trial.leakedDescriptors == 0)
        peer.write(Sample.commandComplete)
        for await packet in packets {
            #expect(packet == Sample.commandComplete)
            break
        }
        queue.sync { transport.close() }
    }

    // MARK: The loop

    @Test("that leaves no descriptor for wake-ups makes the loop hold the queue no more")
    func loopWithoutAWakeUpWorks() async throws {
        let queue = DispatchQueue(label: "faults")
        var made: LoopQueue?
        let trial = FaultRun([Fault(.eventfd, .fails(EMFILE))]) { made = LoopQueue(queue, linger: .seconds(3600)) }
        #expect(trial.unused.isEmpty)
        let loop = try #require(made)
        let (own, other) = try makeSockets()
        let peer = Peer(descriptor: OwnedDescriptor(other))
        let probe = Probe(DescriptorTransport(OwnedDescriptor(own), kind: .unix, loop: loop), on: queue)
        for _ in 0..<3 {
            peer.write(Sample.commandComplete)
            let event = await probe.next()
            try #require(event == .packet(Sample.commandComplete))
            await withCheckedContinuation { continuation in loop.async { continuation.resume() } }
        }
        await probe.perform { $0.close() }
    }

    @Test(
        "does not stop the loop",
        arguments: [Fault(.poll, .fails(EINTR)), Fault(.poll, .fails(ENOMEM)), Fault(.poll, .returns(0))]
    )
    func loopContinuesWithoutPoll(fault: Fault) async throws {
        let (probe, descriptor, peer) = try open(.unix, linger: .milliseconds(500))
        let injection = FaultInjection(fault, at: .descriptor(descriptor))
        // While packets arrive close together, the loop polls.
        while injection.uses == 0 {
            peer.write(Sample.commandComplete)
            let event = await probe.next()
            try #require(event == .packet(Sample.commandComplete))
        }
        await probe.send([Sample.reset])
        #expect(await peer.readOnce() == Sample.reset)
        await probe.perform { $0.close() }
    }

    @Test(
        "on its wake-up only delays work of other threads",
        arguments: [Fault(.write, .fails(EAGAIN)), Fault(.read, .fails(EAGAIN))]
    )
    func loopContinuesWithoutItsWakeUp(fault: Fault) async throws {
        let (own, other) = try makeSockets()
        let peer = Peer(descriptor: OwnedDescriptor(other))
        let queue = DispatchQueue(label: "faults")
        let loop = LoopQueue(queue, linger: .milliseconds(500))
        let injection = FaultInjection(fault, at: .descriptor(loop.wakeUp.number))
        let probe = Probe(DescriptorTransport(OwnedDescriptor(own), kind: .unix, loop: loop), on: queue)
        while injection.uses == 0 {
            peer.write(Sample.commandComplete)
            let event = await probe.next()
            try #require(event == .packet(Sample.commandComplete))
            await withCheckedContinuation { continuation in loop.async { continuation.resume() } }
        }
        await probe.perform { $0.close() }
    }
}
