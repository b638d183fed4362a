import BLEByteCoding
import Dispatch
import Glibc
import Testing

@testable import BLEHCITransport

@Suite("A stream transport", .timeLimit(.minutes(10)))
struct StreamTransportTests {
    enum Family: CaseIterable {
        case unix, tcp

        var listener: Listener { self == .unix ? .unix() : .tcp() }
    }

    @Test(arguments: Family.allCases)
    func packetsAreTransferredInBothDirections(family: Family) async throws {
        let (probe, peer) = try await Probe.connected(to: family.listener)
        await probe.send([Sample.reset, Sample.acl])
        #expect(await peer.read(count: Sample.reset.count + Sample.acl.count) == Sample.reset + Sample.acl)
        peer.write(Sample.all.flatMap { $0 })
        #expect(await probe.next(Sample.all.count) == Sample.all.map { .packet($0) })
        await probe.perform { $0.close() }
    }

    @Test(arguments: Family.allCases)
    func packetInSingleBytesIsDeliveredWhole(family: Family) async throws {
        let (probe, peer) = try await Probe.connected(to: family.listener)
        for byte in Sample.advertisingReport { peer.write([byte]) }
        #expect(await probe.next() == .packet(Sample.advertisingReport))
    }

    @Test(arguments: Family.allCases)
    func packetsBeforeAHangUpAreDeliveredThenOneEnd(family: Family) async throws {
        let (probe, peer) = try await Probe.connected(to: family.listener)
        peer.write(Sample.acl + Sample.acl.dropLast())
        peer.hangUp()
        #expect(await probe.next(2) == [.packet(Sample.acl), .ended(.closedByPeer)])
        // Further events of the transport are ignored.
        await probe.send([Sample.reset])
        await probe.perform { $0.close() }
        #expect(await probe.remaining() == [])
    }

    @Test(arguments: Family.allCases)
    func hangUpDetectedWhileSendingIsReported(family: Family) async throws {
        let (probe, peer) = try await Probe.connected(to: family.listener)
        peer.hangUp()
        await probe.perform { transport in
            for _ in 0..<100 { transport.send(Sample.reset) }
        }
        #expect(await probe.next() == .ended(.closedByPeer))
    }

    @Test(arguments: Family.allCases)
    func streamThatIsNotH4EndsTheTransport(family: Family) async throws {
        let (probe, peer) = try await Probe.connected(to: family.listener)
        peer.write(Sample.acl + Array("HTTP/1.1 400 Bad Request".utf8))
        #expect(await probe.next(2) == [.packet(Sample.acl), .ended(.brokenStream(octet: UInt8(ascii: "H")))])
    }

    @Test(arguments: Family.allCases)
    func closedTransportDeliversNothingEvenInTheMiddleOfABatch(family: Family) async throws {
        let listener = family.listener
        let queue = DispatchQueue(label: "closing")
        async let accepted = listener.accept()
        let transport = try await listener.specification.open(on: queue)
        let peer = await accepted
        let (packets, continuation) = AsyncStream<[UInt8]>.makeStream()
        queue.async {
            transport.start(
                onPacket: {
                    continuation.yield([UInt8](copying: $0))
                    transport.close()
                },
                onEnd: { continuation.yield([UInt8("\($0)".utf8.count & 0xFF)]) }
            )
        }
        peer.write(Sample.all.flatMap { $0 })
        // The stream ends for the peer when the last source has released the descriptor.
        #expect(await peer.read(count: 1) == [])
        queue.sync { continuation.finish() }
        var received: [[UInt8]] = []
        for await packet in packets { received.append(packet) }
        #expect(received == [Sample.commandComplete])
    }

    @Test(arguments: Family.allCases, [true, false])
    func releasedTransportClosesItsDescriptor(family: Family, isStarted: Bool) async throws {
        let listener = family.listener
        let queue = DispatchQueue(label: "dropping")
        async let peer = listener.accept()
        var transport: (any Transport)? = try await listener.specification.open(on: queue)
        if isStarted { queue.sync { [transport] in transport?.start(onPacket: { _ in }, onEnd: { _ in }) } }
        transport = nil
        #expect(await peer.read(count: 1) == [])
    }

    @Test(arguments: Family.allCases)
    func peerThatReadsLateGetsAllPacketsInOrder(family: Family) async throws {
        let options = TransportOptions(backlogByteLimit: 16 << 20)
        let (probe, peer) = try await Probe.connected(to: family.listener, options: options)
        let count = 20_000
        let length = 5 + 251
        func packet(_ number: Int) -> [UInt8] {
            let low = UInt8(truncatingIfNeeded: number)
            return [0x02, 0x40, 0x00, 251, 0, low, UInt8(truncatingIfNeeded: number >> 8)]
                + [UInt8](repeating: low, count: 249)
        }
        await probe.send((0..<count).map(packet))
        // From now on the queue can drain its packets; packets that are sent at this time stay behind them.
        async let more: Void = probe.send((count..<(count + 100)).map(packet))
        let received = await peer.read(count: (count + 100) * length)
        await more
        #expect(received.count == (count + 100) * length)
        let misplaced = (0..<(count + 100)).first { Array(received[($0 * length)..<(($0 + 1) * length)]) != packet($0) }
        #expect(misplaced == nil)
        // And later packets are written directly again.
        await probe.send([Sample.reset])
        #expect(await peer.read(count: Sample.reset.count) == Sample.reset)
    }

    @Test func peerThatNeverReadsEndsTheTransport() async throws {
        let (probe, peer) = try await Probe.connected(to: .unix(), options: TransportOptions(backlogByteLimit: 1000))
        await probe.perform { transport in
            let packet = [UInt8](repeating: 2, count: 1000)
            for _ in 0..<10_000 { transport.send(packet) }
        }
        #expect(await probe.next() == .ended(.overflow))
        withExtendedLifetime(peer) {}
    }
}

@Suite("Opening a stream", .timeLimit(.minutes(10)))
struct StreamOpeningTests {
    private let queue = DispatchQueue(label: "opening")

    private func failure(_ text: String) async -> TransportError? {
        do {
            _ = try await AdapterSpecification(parsing: text).open(on: queue)
            return nil
        } catch {
            return error as? TransportError
        }
    }

    @Test func openingWithoutAListenerFailsWithTheAddress() async {
        let listener = Listener.tcp()
        let name = listener.specification.description
        _ = consume listener
        #expect(await failure(name) == .connectionFailed(name, errno: ECONNREFUSED))
        #expect(await failure("unix:/nonexistent/hci") == .connectionFailed("unix:/nonexistent/hci", errno: ENOENT))
    }

    @Test func openingAPathTooLongForASocketFails() async {
        let specification = AdapterSpecification.unix(path: String(repeating: "x", count: 200))
        await #expect(throws: TransportError.connectionFailed("\(specification)", errno: ENAMETOOLONG)) {
            try await specification.open(on: queue)
        }
    }

    @Test func openingAnUnknownHostFails() async {
        #expect(await failure("tcp:\(hostWithoutAddress):1") == .unknownHost(hostWithoutAddress))
    }

    @Test func openingByHostNameConnectsToTheListener() async throws {
        let listener = Listener.tcp()
        guard case .tcp(_, let port) = listener.specification else {
            Issue.record("it listens on \(listener.specification)")
            return
        }
        async let peer = listener.accept()
        let transport = try await AdapterSpecification.tcp(host: "localhost", port: port).open(on: queue)
        #expect(await peer.descriptor.number >= 0)
        queue.sync { transport.close() }
    }

    @Test func openingAnUnreachableHostWithAZeroTimeoutFails() async {
        let options = TransportOptions(connectTimeout: .zero)
        let specification = AdapterSpecification.tcp(host: hostWithoutAddress, port: 1)
        let error = await #expect(throws: TransportError.self) {
            try await specification.open(on: queue, options: options)
        }
        #expect(error == .connectTimedOut("\(specification)") || error == .unknownHost(hostWithoutAddress))
    }

    @Test func virtualAdapterNeedsAClosureThatMakesIt() async throws {
        await #expect(throws: TransportError.unsupported("a virtual adapter")) {
            try await AdapterSpecification.virtual(name: "").open(on: queue)
        }
        let ends = PipeTransport.makePair(queue, queue)
        let opened = try await AdapterSpecification.virtual(name: "lab").open(on: queue) { name in
            name == "lab" ? ends.0 : ends.1
        }
        #expect(opened === ends.0)
    }
}
