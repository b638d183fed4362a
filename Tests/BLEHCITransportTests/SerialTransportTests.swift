import CBLEBluetooth
import Dispatch
import Glibc
import Testing

@testable import BLEHCITransport

@Suite("A serial line", .timeLimit(.minutes(10)))
struct SerialTransportTests {
    /// The two ends of a pseudo-terminal: one to read and write, and the path of the other.
    private func makeTerminal() throws -> (Peer, path: String) {
        var (master, line) = (Int32(-1), Int32(-1))
        var name = [CChar](repeating: 0, count: 128)
        try #require(openpty(&master, &line, &name, nil, nil) == 0)
        _ = close(line)
        let path = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        return (Peer(descriptor: OwnedDescriptor(master)), path)
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
