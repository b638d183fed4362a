import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The sender of isochronous streams")
struct IsochronousSenderTests {
    private static let handle: ConnectionHandle = 0x0060
    private let start = Instant(nanoseconds: 5_000_000)

    private static func sender(length: Int = 12, count: Int = 8) -> IsochronousSender {
        var sender = IsochronousSender()
        sender.configure(packetLength: length, packetCount: count)
        sender.open(handle, sduInterval: .milliseconds(10))
        return sender
    }

    private static func packets(_ sender: inout IsochronousSender) -> [String] {
        var packets: [String] = []
        while true {
            var buffer = PacketBuffer()
            guard sender.nextPacket(into: &buffer) != nil else { return packets }
            packets.append([UInt8](copying: buffer.bytes).hexadecimal)
        }
    }

    @Test func shortSDUIsOnePacket() {
        var sender = Self.sender()
        sender.enqueue([0xAA, 0xBB], timeStamp: nil, on: Self.handle, at: start)
        #expect(Self.packets(&sender) == ["0560200600" + "0000" + "0200" + "aabb"])
    }

    @Test func longSDUIsCutAndNumbered() {
        var sender = Self.sender()
        sender.enqueue(Array(0..<10), timeStamp: 0x0102_0304, on: Self.handle, at: start)
        sender.enqueue(Array(0..<21), timeStamp: nil, on: Self.handle, at: start)
        #expect(
            Self.packets(&sender) == [
                "0560400c00" + "04030201" + "0000" + "0a00" + "00010203",
                "0560300600" + "040506070809",
                "0560000c00" + "0100" + "1500" + "0001020304050607",
                "0560100c00" + "08090a0b0c0d0e0f10111213",
                "0560300100" + "14",
            ]
        )
    }

    @Test func intervalsWithoutAnSDUHaveNumbers() {
        var sender = Self.sender()
        // The second SDU is late, but in its interval; the third one has missed two intervals.
        for delay in [0, 15, 49, 50] as [Int] {
            sender.enqueue([], timeStamp: nil, on: Self.handle, at: start + .milliseconds(delay))
        }
        // Two SDUs of the same interval: the second one is for the next.
        #expect(Self.packets(&sender).map { $0.dropFirst(10).prefix(4) } == ["0000", "0100", "0400", "0500"])
    }

    @Test func sdusAheadOfTimeHaveConsecutiveNumbersThatContinueAtZero() {
        var sender = Self.sender(count: 100)
        for _ in 0..<3 { sender.enqueue([], timeStamp: nil, on: Self.handle, at: start) }
        for delay in [655_350, 655_360] as [Int] {
            sender.enqueue([], timeStamp: nil, on: Self.handle, at: start + .milliseconds(delay))
        }
        #expect(Self.packets(&sender).map { $0.dropFirst(10).prefix(4) } == ["0000", "0100", "0200", "ffff", "0000"])
    }

    @Test func emptySDUIsSent() {
        var sender = Self.sender()
        sender.enqueue([], timeStamp: nil, on: Self.handle, at: start)
        #expect(Self.packets(&sender) == ["0560200400" + "0000" + "0000"])
        #expect(!sender.hasPacket)
    }

    /// A controller that frees buffers for whole SDUs only would otherwise have parts of three SDUs in all of them.
    @Test func sdusAreCompletedOneAfterTheOther() {
        var sender = Self.sender(count: 12)
        let handles = (0x60...0x62).map { ConnectionHandle(rawValue: $0) }
        for handle in handles {
            sender.open(handle, sduInterval: .milliseconds(10))
            sender.enqueue(Array(repeating: 0, count: 68), timeStamp: nil, on: handle, at: start)
        }
        func take() -> [UInt16] {
            var taken: [UInt16] = []
            var buffer = PacketBuffer()
            while let handle = sender.nextPacket(into: &buffer) { taken.append(handle.rawValue) }
            return taken
        }
        #expect(take() == Array(repeating: 0x60, count: 6) + Array(repeating: 0x61, count: 6))
        // The first stream ends, which changes the places of the others, while the SDU of the last one is sent.
        _ = sender.completed(3, on: handles[0])
        #expect(take() == [0x62, 0x62, 0x62])
        sender.enqueue(Array(repeating: 0, count: 68), timeStamp: nil, on: handles[1], at: start)
        sender.close(handles[0])
        #expect(take() == [0x62, 0x62, 0x62])
    }

    @Test func sduThatHasBegunIsCompletedAlthoughItsStreamIsBeingEnded() {
        var sender = Self.sender(count: 1)
        for _ in 0..<2 { sender.enqueue(Array(repeating: 0, count: 20), timeStamp: nil, on: Self.handle, at: start) }
        #expect(Self.packets(&sender).count == 1)
        sender.dropUnsent(Self.handle)
        _ = sender.completed(1, on: Self.handle)
        #expect(Self.packets(&sender).count == 1)
        _ = sender.completed(1, on: Self.handle)
        #expect(Self.packets(&sender).isEmpty && sender.isDrained(Self.handle))
    }

    @Test func packetsWaitForTheControllersBuffers() {
        var sender = Self.sender(count: 2)
        for byte in 0..<3 { sender.enqueue([UInt8(byte)], timeStamp: nil, on: Self.handle, at: start) }
        #expect(Self.packets(&sender).count == 2)
        #expect(sender.credits == 0 && !sender.hasPacket)
        let isKnown = sender.completed(1, on: Self.handle)
        #expect(isKnown && sender.credits == 1)
        #expect(Self.packets(&sender) == ["0560200500" + "0200" + "0100" + "02"])
        // A controller cannot return more buffers than it holds.
        _ = sender.completed(100, on: Self.handle)
        #expect(sender.credits == 2)
        let isOtherKnown = sender.completed(1, on: 0x0061)
        #expect(!isOtherKnown)
    }

    @Test func streamsTakeTurns() {
        var sender = Self.sender()
        sender.open(0x0061, sduInterval: .milliseconds(10))
        for handle in [Self.handle, 0x0061] {
            for _ in 0..<2 { sender.enqueue([0x11], timeStamp: nil, on: handle, at: start) }
        }
        #expect(Self.packets(&sender).map { $0.prefix(4) } == ["0560", "0561", "0560", "0561"])
    }

    @Test func queueIsBounded() {
        var sender = Self.sender(count: 0)
        for _ in 0..<IsochronousSender.unitLimit {
            #expect(sender.hasRoom(Self.handle))
            sender.enqueue([1], timeStamp: nil, on: Self.handle, at: start)
        }
        #expect(!sender.hasRoom(Self.handle))
    }

    @Test(arguments: [(8, 4, false), (9, 4, true), (251, 0, false)] as [(Int, Int, Bool)])
    func streamsNeedBuffersForTheirHeaders(_ length: Int, _ count: Int, _ canSend: Bool) {
        var controller = ControllerInformation(
            identityAddress: DeviceAddress(0x0011_2233_4455, isRandom: false),
            manufacturer: CompanyIdentifier(rawValue: 0),
            commands: SupportedCommands()
        )
        controller.commands.insert(LESetupISODataPath.self)
        controller.commands.insert(LECreateBIG.self)
        controller.commands.insert(LESetPeriodicAdvertisingEnable.self)
        controller.usesExtendedCommands = true
        controller.features = [
            .connectedIsochronousStreamCentral, .connectedIsochronousStreamPeripheral, .isochronousBroadcaster,
        ]
        controller.enabledHostFeatures = .connectedIsochronousStreamHostSupport
        controller.isoDataLength = length
        controller.isoPacketCount = count
        #expect(controller.canUseConnectedStreams(asCentral: true) == canSend)
        #expect(controller.canUseConnectedStreams(asCentral: false) == canSend)
        #expect(controller.canBroadcastStreams == canSend)
        #expect((Self.sender(length: length, count: count).longestSDU > 0) == canSend)
    }

    @Test func endOfAStreamFreesItsBuffers() {
        var sender = Self.sender(count: 1)
        for _ in 0..<2 { sender.enqueue([1], timeStamp: nil, on: Self.handle, at: start) }
        #expect(Self.packets(&sender).count == 1)
        sender.close(Self.handle)
        #expect(sender.credits == 1 && !sender.hasPacket)
        let isKnown = sender.completed(1, on: Self.handle)
        #expect(!isKnown && sender.credits == 1)
    }
}

@Suite("The assembler of received SDUs")
struct SDUAssemblerTests {
    private static func receive(_ digits: String, _ assembler: inout SDUAssembler) throws -> SDUAssembler.Outcome {
        let packet = try #require([UInt8](hexadecimal: digits))
        return assembler.receive(try ISOPacket(decoding: packet.rawSpan))
    }

    private static func unit(
        _ data: [UInt8],
        _ number: UInt16 = 7,
        timeStamp: UInt32? = nil,
        _ status: IsochronousSDU.Status = .valid
    ) -> SDUAssembler.Outcome {
        .unit(IsochronousSDU(data: data, sequenceNumber: number, timeStamp: timeStamp, status: status))
    }

    @Test func wholeSDUIsReported() throws {
        var assembler = SDUAssembler()
        #expect(
            try Self.receive("60600a00" + "04030201" + "0700" + "0200" + "aabb", &assembler)
                == Self.unit([0xAA, 0xBB], timeStamp: 0x0102_0304)
        )
    }

    @Test func fragmentsArePutTogether() throws {
        var assembler = SDUAssembler()
        #expect(try Self.receive("60000500" + "0700" + "0300" + "aa", &assembler) == .incomplete)
        #expect(try Self.receive("60100100" + "bb", &assembler) == .incomplete)
        #expect(try Self.receive("60300100" + "cc", &assembler) == Self.unit([0xAA, 0xBB, 0xCC]))
    }

    @Test func lostSDUIsReportedWithoutData() throws {
        var assembler = SDUAssembler()
        #expect(try Self.receive("60200400" + "0700" + "0080", &assembler) == Self.unit([], 7, .lost))
        #expect(
            try Self.receive("60200500" + "0800" + "0140" + "aa", &assembler) == Self.unit([0xAA], 8, .possiblyInvalid)
        )
    }

    @Test(arguments: ["60100100aa", "60300100aa"])
    func fragmentWithoutAStartIsDropped(_ packet: String) throws {
        var assembler = SDUAssembler()
        #expect(try Self.receive(packet, &assembler) == .violation)
    }

    @Test func sduOfAnotherLengthThanItSaysIsDropped() throws {
        var assembler = SDUAssembler()
        #expect(try Self.receive("60200500" + "0700" + "0200" + "aa", &assembler) == .violation)
        #expect(try Self.receive("60000600" + "0700" + "0100" + "aabb", &assembler) == .violation)
        #expect(try Self.receive("60000500" + "0700" + "0200" + "aa", &assembler) == .incomplete)
        #expect(try Self.receive("60100200" + "bbcc", &assembler) == .violation)
        #expect(try Self.receive("60200500" + "0700" + "0100" + "aa", &assembler) == Self.unit([0xAA]))
    }

    @Test func unfinishedSDUIsReplacedByTheNext() throws {
        var assembler = SDUAssembler()
        #expect(try Self.receive("60000500" + "0700" + "0300" + "aa", &assembler) == .incomplete)
        #expect(try Self.receive("60000500" + "0800" + "0200" + "bb", &assembler) == .violation)
        #expect(try Self.receive("60300100" + "cc", &assembler) == Self.unit([0xBB, 0xCC], 8))
    }
}
