import CBLEBluetooth
import Dispatch
import FaultInjection
import Glibc
import Synchronization
import Testing

@testable import BLEHCITransport

@Suite("A serial line", .timeLimit(.minutes(10)))
struct SerialTransportTests {
    /// CRTSCTS, which Swift does not import.
    private static let flowControl: tcflag_t = 0x8000_0000

    /// The two ends of a pseudo-terminal: one to read and write, and the path of the other.
    private func makeTerminal() throws -> (Peer, path: String) {
        var (master, line) = (Int32(-1), Int32(-1))
        var name = [CChar](repeating: 0, count: 128)
        try #require(openpty(&master, &line, &name, nil, nil) == 0)
        _ = close(line)
        let path = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        return (Peer(descriptor: OwnedDescriptor(master)), path)
    }

    private func settings(of terminal: OwnedDescriptor) throws -> termios {
        var settings = termios()
        try #require(tcgetattr(terminal.number, &settings) == 0)
        return settings
    }

    /// Whether other programs cannot open the terminal.
    private func isExclusive(_ terminal: OwnedDescriptor) throws -> Bool {
        var value: CInt = -1
        // TIOCGEXCL, a macro with sizeof.
        try #require(ioctl(terminal.number, 0x8004_5440, &value) == 0)
        return value != 0
    }

    @Test(arguments: ["", ",flow=rtscts"])
    func everyByteIsTransferredUnchangedInBothDirections(flow: String) async throws {
        let (peer, path) = try makeTerminal()
        let queue = DispatchQueue(label: "serial")
        let specification = try AdapterSpecification(parsing: "serial:\(path),115200\(flow)")
        let probe = Probe(try await specification.open(on: queue), on: queue)
        let every: [UInt8] = [0x02, 0x40, 0x00, 0x00, 0x01] + (0...255).map { UInt8($0) }
        await probe.send([Sample.reset, every])
        #expect(await peer.read(count: Sample.reset.count + every.count) == Sample.reset + every)
        let inbound: [UInt8] = [0x02, 0x40, 0x20] + every.dropFirst(3)
        _ = BLEHCITransport.write(peer.descriptor.number, (Sample.commandComplete + inbound).rawSpan)
        #expect(await probe.next(2) == [.packet(Sample.commandComplete), .packet(inbound)])
        await probe.perform { $0.close() }
    }

    @Test func framingIsFoundAfterNoise() async throws {
        let (peer, path) = try makeTerminal()
        let queue = DispatchQueue(label: "serial")
        let opened = try await AdapterSpecification.serial(path: path, baudRate: 921_600, usesFlowControl: false)
            .open(on: queue)
        let probe = Probe(opened, on: queue)
        _ = BLEHCITransport.write(peer.descriptor.number, ([0x00, 0xC0, 0xFF] + Sample.commandComplete).rawSpan)
        #expect(await probe.next() == .packet(Sample.commandComplete))
    }

    @Test func framingLostAfterTheAnswerToResetEndsTheTransport() async throws {
        let (peer, path) = try makeTerminal()
        let queue = DispatchQueue(label: "serial")
        let opened = try await AdapterSpecification.serial(path: path, baudRate: 921_600, usesFlowControl: false)
            .open(on: queue)
        let probe = Probe(opened, on: queue)
        // Until then, bytes between packets are skipped.
        for part in [Sample.acl, [0xFF] + Sample.acl, [0xFE] + Sample.commandComplete] {
            _ = BLEHCITransport.write(peer.descriptor.number, part.rawSpan)
            let isAnswer = part.suffix(Sample.commandComplete.count) == Sample.commandComplete[...]
            #expect(await probe.next() == .packet(isAnswer ? Sample.commandComplete : Sample.acl))
        }
        _ = BLEHCITransport.write(peer.descriptor.number, (Sample.acl + [0xFF] + Sample.acl).rawSpan)
        #expect(await probe.next(2) == [.packet(Sample.acl), .ended(.brokenStream(octet: 0xFF))])
    }

    @Test func noiseAfterAnotherResetIsSkippedUntilItsAnswer() async throws {
        let (peer, path) = try makeTerminal()
        let queue = DispatchQueue(label: "serial")
        let opened = try await AdapterSpecification.serial(path: path, baudRate: 921_600, usesFlowControl: false)
            .open(on: queue)
        let probe = Probe(opened, on: queue)
        for _ in 0..<2 {
            await probe.send([Sample.reset])
            #expect(await peer.read(count: Sample.reset.count) == Sample.reset)
            _ = BLEHCITransport.write(peer.descriptor.number, ([0x00, 0xC0, 0xFF] + Sample.commandComplete).rawSpan)
            #expect(await probe.next() == .packet(Sample.commandComplete))
        }
        await probe.perform { $0.close() }
    }

    @Test func unpluggedLineEndsTheTransport() async throws {
        var terminal: (Peer, path: String)? = try makeTerminal()
        let queue = DispatchQueue(label: "serial")
        let path = try #require(terminal?.path)
        let opened = try await AdapterSpecification.serial(path: path, baudRate: 9600, usesFlowControl: false)
            .open(on: queue)
        let probe = Probe(opened, on: queue)
        terminal = nil
        #expect(await probe.next() == .ended(.closedByPeer))
    }

    @Test func lineIsFreeAfterTheEnd() throws {
        let (peer, path) = try makeTerminal()
        let observer = OwnedDescriptor(open(path, O_RDWR | O_NOCTTY))
        var line: OwnedDescriptor? = try openSerialLine(path, rate: 115_200, usesFlowControl: false)
        #expect(try isExclusive(observer))
        withExtendedLifetime(line) {}
        line = nil
        #expect(try !isExclusive(observer))
        // The line was taken before this step fails.
        let trial = FaultRun([Fault(.tcflush, .fails(EIO))]) {
            _ = try openSerialLine(path, rate: 115_200, usesFlowControl: false)
        }
        #expect(trial.message != nil)
        #expect(try !isExclusive(observer))
        withExtendedLifetime(peer) {}
    }

    /// Opens a transport, with a fault that counts the calls which close its descriptor.
    private func makeTransport(_ path: String, on queue: DispatchQueue) throws -> (Probe, closing: FaultInjection) {
        let line = try openSerialLine(path, rate: 115_200, usesFlowControl: true)
        let closing = FaultInjection(Fault(.close, .fails(EIO)), at: .descriptor(line.number))
        let transport = DescriptorTransport(line, kind: .serial, loop: LoopQueue(queue, linger: nil))
        return (Probe(transport, on: queue), closing)
    }

    /// A recovery opens the line in the turn in which its transport was closed. The source of that transport still has
    /// the earlier descriptor then.
    @Test func lineThatIsOpenedAgainIsNotChangedByTheEarlierTransport() async throws {
        let (peer, path) = try makeTerminal()
        let queue = DispatchQueue(label: "serial")
        let (probe, closing) = try makeTransport(path, on: queue)
        let reopened = Mutex<Result<OwnedDescriptor, TransportError>?>(nil)
        await probe.perform { transport in
            transport.close()
            let result: Result<OwnedDescriptor, TransportError> = Result { () throws(TransportError) in
                try openSerialLine(path, rate: 115_200, usesFlowControl: true)
            }
            reopened.withLock { $0 = result }
        }
        let line = try #require(reopened.withLock { $0 }).get()
        while closing.uses == 0 { await Task.yield() }
        #expect(try settings(of: line).c_cflag & SerialTransportTests.flowControl != 0)
        #expect(try isExclusive(line))
        withExtendedLifetime(peer) {}
    }

    @Test func outputThatWaitsIsDiscardedAtTheEnd() throws {
        let (peer, path) = try makeTerminal()
        let observer = OwnedDescriptor(open(path, O_RDWR | O_NOCTTY))
        var line: OwnedDescriptor? = try openSerialLine(path, rate: 115_200, usesFlowControl: true)
        let number = try #require(line?.number)
        #expect(try settings(of: observer).c_cflag & SerialTransportTests.flowControl != 0)
        let flush = FaultInjection(Fault(.tcflush, .returns(0)), at: .descriptor(number))
        withExtendedLifetime(line) {}
        line = nil
        #expect(flush.uses == 1)
        #expect(try settings(of: observer).c_cflag & SerialTransportTests.flowControl == 0)
        withExtendedLifetime(peer) {}
    }

    @Test func lineThatCannotBeConfiguredIsLeftAsItIs() throws {
        let (peer, path) = try makeTerminal()
        let trial = FaultRun([Fault(.tcflush, .returns(0)), Fault(.tcsetattr, .fails(EIO))]) {
            _ = try openSerialLine(path, rate: 115_200, usesFlowControl: false)
        }
        #expect(trial.message != nil)
        #expect(trial.unused.map(\.call) == [.tcflush])
        withExtendedLifetime(peer) {}
    }

    @Test func softwareFlowControlOfAnEarlierProgramIsTurnedOff() throws {
        let (peer, path) = try makeTerminal()
        let observer = OwnedDescriptor(open(path, O_RDWR | O_NOCTTY))
        var earlier = try settings(of: observer)
        let flags = tcflag_t(IXON | IXOFF | IXANY | INPCK)
        earlier.c_iflag |= flags
        try #require(tcsetattr(observer.number, TCSANOW, &earlier) == 0)
        try #require(try settings(of: observer).c_iflag & flags == flags)
        let line = try openSerialLine(path, rate: 115_200, usesFlowControl: false)
        #expect(try settings(of: observer).c_iflag & flags == 0)
        withExtendedLifetime((peer, line)) {}
    }

    @Test(
        arguments: [("/nonexistent/tty", 9600, ENOENT), ("/dev/null", 9600, ENOTTY)] as [(String, Int, Int32)]
    )
    func pathThatIsNoTerminalIsRefused(path: String, rate: Int, errno: Int32) async {
        await #expect(throws: TransportError.serialLine(path, errno: errno)) {
            try await AdapterSpecification.serial(path: path, baudRate: rate, usesFlowControl: false)
                .open(on: DispatchQueue(label: "serial"))
        }
    }

    @Test func everyRateOfTheNotationIsSupported() {
        var speed = speed_t()
        for rate in AdapterSpecification.baudRates { #expect(ble_baud_constant(UInt32(rate), &speed) == 0) }
        #expect(ble_baud_constant(12_345, &speed) == -EINVAL)
    }
}
