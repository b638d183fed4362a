import Dispatch
import Testing

@testable import BLEHCITransport

@Suite("A pipe", .timeLimit(.minutes(10)))
struct PipeTransportTests {
    private let queues = (DispatchQueue(label: "first"), DispatchQueue(label: "second"))

    @Test func packetsArriveInOrderEvenIfSentBeforeTheOtherEndStarts() async {
        let ends = PipeTransport.makePair(queues.0, queues.1)
        let first = Probe(ends.0, on: queues.0)
        await first.send([Sample.reset, Sample.acl])
        let second = Probe(ends.1, on: queues.1)
        await first.send([Sample.iso])
        #expect(await second.next(3) == [.packet(Sample.reset), .packet(Sample.acl), .packet(Sample.iso)])
        await second.send([Sample.commandComplete])
        #expect(await first.next() == .packet(Sample.commandComplete))
    }

    @Test func closeEndsTheOtherEndOnceAfterAllPackets() async {
        let ends = PipeTransport.makePair(queues.0, queues.1)
        let (first, second) = (Probe(ends.0, on: queues.0), Probe(ends.1, on: queues.1))
        await first.send([Sample.reset])
        await first.perform { transport in
            transport.close()
            transport.close()
            transport.send(Sample.acl)
        }
        #expect(await second.next(2) == [.packet(Sample.reset), .ended(.closedByPeer)])
        await second.send([Sample.acl])
        await second.perform { $0.close() }
        #expect(await second.remaining() == [])
    }

    @Test func releaseOfAnEndEndsTheOther() async {
        let probe: Probe
        do {
            let ends = PipeTransport.makePair(queues.0, queues.1)
            probe = Probe(ends.1, on: queues.1)
            queues.0.sync {
                let packet = Sample.reset
                ends.0.send(packet.rawSpan)
            }
        }
        #expect(await probe.next(2) == [.packet(Sample.reset), .ended(.closedByPeer)])
    }

    @Test func closeBeforeTheOtherEndStartsIsReportedAtItsStart() async {
        let ends = PipeTransport.makePair(queues.0, queues.1)
        let first = Probe(ends.0, on: queues.0)
        await first.send([Sample.reset])
        await first.perform { $0.close() }
        let second = Probe(ends.1, on: queues.1)
        #expect(await second.next(2) == [.packet(Sample.reset), .ended(.closedByPeer)])
    }
}
