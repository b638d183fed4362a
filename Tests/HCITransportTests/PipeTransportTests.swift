import Dispatch
import Testing

@testable import HCITransport

@Suite("A pipe", .timeLimit(.minutes(10)))
struct PipeTransportTests {
    private let queues = (DispatchQueue(label: "first"), DispatchQueue(label: "second"))

    @Test("delivers in order on the other end's queue, including packets sent before that end started")
    func delivers() async {
        let ends = PipeTransport.makePair(queues.0, queues.1)
        let first = Probe(ends.0, on: queues.0)
        await first.send([Sample.reset, Sample.acl])
        let second = Probe(ends.1, on: queues.1)
        await first.send([Sample.iso])
        #expect(await second.next(3) == [.packet(Sample.reset), .packet(Sample.acl), .packet(Sample.iso)])
        await second.send([Sample.commandComplete])
        #expect(await first.next() == .packet(Sample.commandComplete))
    }

    @Test("that one end closes ends once for the other, after all packets")
    func closes() async {
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
    }

    @Test("that is closed before the other end starts reports it at the start")
    func closesEarly() async {
        let ends = PipeTransport.makePair(queues.0, queues.1)
        let first = Probe(ends.0, on: queues.0)
        await first.send([Sample.reset])
        await first.perform { $0.close() }
        let second = Probe(ends.1, on: queues.1)
        #expect(await second.next(2) == [.packet(Sample.reset), .ended(.closedByPeer)])
    }
}
