import BluetoothHost
import Testing

@testable import BLETool

@Suite("The parts of a broadcast file")
struct ReceivedBroadcastFileTests {
    private func part(_ number: UInt32, _ data: [UInt8]) -> IsochronousSDU {
        let digits = (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * UInt32($0))) }
        return IsochronousSDU(data: digits + data, sequenceNumber: 0, timeStamp: nil, status: .valid)
    }

    private func end(_ count: UInt8) -> IsochronousSDU { part(0xFFFF_FFFF, [count, 0, 0, 0]) }

    @Test func fileIsCompleteWithItsLastPartInAnyOrder() throws {
        var file = ReceivedBroadcastFile()
        #expect(try file.take(part(1, [3, 4])) == nil)
        #expect(try file.take(end(2)) == nil)
        #expect(try file.take(part(0, [1, 2])) == [1, 2, 3, 4])
    }

    @Test func partsBeyondTheEndAreNoneOfTheFile() throws {
        var file = ReceivedBroadcastFile()
        _ = try file.take(part(7, [9, 9, 9]))
        _ = try file.take(part(0, [1]))
        #expect(try file.take(end(2)) == nil)
        #expect(file.partCount == 1 && file.byteCount == 1)
        #expect(try file.take(part(8, [9])) == nil)
        #expect(file.partCount == 1)
        #expect(try file.take(part(1, [2])) == [1, 2])
    }
}
