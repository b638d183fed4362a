import BLECapture
import Dispatch
import FaultInjection
import Glibc
import Testing

@testable import BLEHCITransport

@Suite("A fault of the system, on the monitor channel,", .timeLimit(.minutes(10)))
struct MonitorFaultTests {
    typealias Case = FaultCase<TransportError>

    /// A socket in place of the kernel's, and the kernel's end of it, with one message.
    private func sockets() throws -> (channel: OwnedDescriptor, kernel: OwnedDescriptor) {
        let (channel, kernel) = try makeSockets(preservingPackets: true)
        let message: [UInt8] = [0x02, 0x00, 0x01, 0x00, 0x03, 0x00, 0x03, 0x0C, 0x00]
        _ = try send(kernel, message.rawSpan).get()
        return (OwnedDescriptor(channel), OwnedDescriptor(kernel))
    }

    @Test(
        "makes its opening fail with its reason",
        arguments: [
            .init(
                Fault(.socket, .fails(EMFILE)),
                error: .connectionFailed("the kernel's monitor channel", errno: EMFILE)
            ),
            .init(Fault(.socket, .fails(EAFNOSUPPORT)), error: .monitorUnavailable),
            .init(
                Fault(.socket, .returns(Int(open("/dev/null", O_RDONLY)))),
                Fault(.bind, .fails(EPERM)),
                error: .permissionDenied("the kernel's monitor channel")
            ),
            .init(
                Fault(.socket, .returns(Int(open("/dev/null", O_RDONLY)))),
                Fault(.bind, .fails(EINVAL)),
                error: .monitorUnavailable
            ),
        ] as [Case]
    )
    func openingFailsWithItsReason(item: Case) {
        item.run { _ = try MonitorChannel() }
    }

    @Test(
        "makes reading fail with its reason, or is overcome",
        arguments: [
            .init(Fault(.recvmsg, .fails(ENOMEM)), error: .readFailed(errno: ENOMEM)),
            .init(Fault(.recvmsg, .fails(EINTR), count: 3)),
            .init(Fault(.recvmsg, .fails(EAGAIN), count: 3)),
            .init(Fault(.recvmsg, .fails(EAGAIN)), Fault(.poll, .fails(ENOMEM)), error: .readFailed(errno: ENOMEM)),
            .init(Fault(.recvmsg, .fails(EAGAIN), count: 1), Fault(.getsockopt, .fails(EIO))),
            .init(Fault(.setsockopt, .fails(EPERM))),
        ] as [Case]
    )
    func readingFailsWithItsReason(item: Case) throws {
        let (socket, kernel) = try sockets()
        item.run {
            var channel = MonitorChannel(socket, stop: CancellationToken())
            let adapter = try channel.next()?.adapterIndex
            let drops = channel.drops
            #expect(adapter == 1)
            #expect(drops == 0)
        }
        withExtendedLifetime(kernel) {}
    }

    @Test("that leaves no descriptor for the stop does not prevent it")
    func stopWorksWithoutADescriptor() async throws {
        var stop: CancellationToken?
        let trial = FaultRun([Fault(.eventfd, .fails(EMFILE))]) { stop = CancellationToken() }
        #expect(trial.unused.isEmpty)
        let (socket, kernel) = try sockets()
        let made = try #require(stop)
        let isEnded = await offThread {
            var channel = MonitorChannel(socket, stop: made)
            let isFirst = (try? channel.next()) != nil
            // Another thread stops it, at the latest while it waits.
            let second = try? channel.next(beforeWaiting: { DispatchQueue.global().async { made.cancel() } })
            return isFirst && second == nil
        }
        #expect(isEnded)
        withExtendedLifetime(kernel) {}
    }
}
