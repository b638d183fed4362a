import Dispatch
import Glibc
import Testing

@testable import BLEHCITransport

@Suite("A socket with an error and without data", .timeLimit(.minutes(10)))
struct SocketErrorTests {
    /// A datagram socket that is connected to a port at which nobody listens: the answer to what it sends is an error.
    private func openUnansweredSocket() throws -> OwnedDescriptor {
        let listener = OwnedDescriptor(socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0))
        let own = OwnedDescriptor(socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        try unsafe withUnsafeMutablePointer(to: &address) { pointer in
            try unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                try #require(unsafe bind(listener.number, address, length) == 0)
                try #require(unsafe getsockname(listener.number, address, &length) == 0)
                try #require(unsafe connect(own.number, address, length) == 0)
            }
        }
        try #require(fcntl(own.number, F_SETFL, O_NONBLOCK) == 0)
        return own
    }

    /// An HCI socket has such an error when its adapter is removed.
    @Test(arguments: [nil, .seconds(1)] as [Duration?])
    func errorEndsAnIdleTransport(linger: Duration?) async throws {
        let socket = try openUnansweredSocket()
        let queue = DispatchQueue(label: "errors")
        let transport = DescriptorTransport(
            socket,
            kind: .hci(index: 1, channel: .user),
            loop: LoopQueue(queue, linger: linger)
        )
        let probe = Probe(transport, on: queue)
        queue.sync { transport.send([1, 3, 0x0C, 0].rawSpan) }
        #expect(await probe.next() == .ended(.readFailed(errno: ECONNREFUSED)))
    }
}
