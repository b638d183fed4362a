import BLEByteCoding
import BluetoothTypes
import Testing

@testable import BLEHCITransport

@Suite("The kernel's management messages")
struct ManagementMessageTests {
    /// Read Controller Information of hci2: 00:1A:7D:DA:71:13, powered.
    static let information: [UInt8] =
        [0x13, 0x71, 0xDA, 0x7D, 0x1A, 0x00, 0x09, 0x0A, 0x00, 0xFF, 0xFE, 0x01, 0x00, 0x81, 0x02, 0x00, 0x00]
        + [UInt8](repeating: 0, count: 3 + 249 + 11)

    /// Command Complete of Read Controller Information.
    static func answer(index: UInt8 = 2, status: UInt8 = 0, _ parameters: [UInt8] = information) -> [UInt8] {
        let length = parameters.count + 3
        return [0x01, 0x00, index, 0x00, UInt8(length & 0xFF), UInt8(length >> 8), 0x04, 0x00, status] + parameters
    }

    @Test func commandHasTheBytesOfTheInterface() {
        #expect(ManagementCommand.readInformation(index: 0x0102).bytes == [0x04, 0x00, 0x02, 0x01, 0x00, 0x00])
    }

    @Test(
        arguments: [
            ([0x04, 0x00, 0x01, 0x00, 0x00, 0x00], .adapterChanged(index: 1)),
            ([0x05, 0x00, 0x02, 0x01, 0x00, 0x00], .adapterChanged(index: 0x0102)),
            ([0x06, 0x00, 0x00, 0x00, 0x04, 0x00, 0x81, 0x02, 0x00, 0x00], .adapterChanged(index: 0)),
            ([0x1D, 0x00, 0x03, 0x00, 0x00, 0x00], .adapterChanged(index: 3)),
            ([0x20, 0x00, 0x03, 0x00, 0x02, 0x00, 0x00, 0x01], .adapterChanged(index: 3)),
            ([0x0B, 0x00, 0x00, 0x00, 0x01, 0x00, 0xAA], .other(code: 0x0B)),
            (
                [0x02, 0x00, 0x07, 0x00, 0x03, 0x00, 0x04, 0x00, 0x11],
                .completed(opcode: 4, index: 7, status: 0x11, parameters: [])
            ),
            (
                [0x01, 0x00, 0xFF, 0xFF, 0x05, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00],
                .completed(opcode: 3, index: 0xFFFF, status: 0, parameters: [0, 0])
            ),
        ] as [([UInt8], ManagementEvent)]
    )
    func eventIsDecoded(bytes: [UInt8], expected: ManagementEvent) throws {
        #expect(try ManagementEvent(decoding: bytes.rawSpan) == expected)
    }

    @Test func informationHasTheAddressAndTheSettings() throws {
        let found = try ManagementInformation(decoding: Self.information.rawSpan)
        #expect(found.address == DeviceAddress(0x001A_7DDA_7113, isRandom: false))
        #expect(found.settings == 0x0281)
        let unread = [UInt8](repeating: 0, count: 280)
        let empty = try ManagementInformation(decoding: unread.rawSpan)
        #expect(empty.address == nil && empty.settings == 0)
    }

    @Test(
        arguments: [
            answer(), [0x05, 0x00, 0x02, 0x01, 0x00, 0x00], [0x02, 0x00, 0x07, 0x00, 0x03, 0x00, 4, 0, 1],
        ] as [[UInt8]]
    )
    func everyTruncationIsAnError(message: [UInt8]) {
        for length in message.indices {
            #expect(throws: PacketDecodingError.self) {
                try ManagementEvent(decoding: message.rawSpan.extracting(first: length))
            }
        }
        for length in Self.information.indices {
            #expect(throws: PacketDecodingError.self) {
                try ManagementInformation(decoding: Self.information.rawSpan.extracting(first: length))
            }
        }
    }

    @Test(
        arguments: [
            [0x04, 0x00, 0x01, 0x00, 0xFF, 0xFF], [0x04, 0x00, 0x01, 0x00, 0x01, 0x00],
            [0x04, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00], [0x01, 0x00, 0x01, 0x00, 0x00, 0x00],
            [0x01, 0x00, 0x01, 0x00, 0x02, 0x00, 0x04, 0x00], [0x02, 0x00, 0x01, 0x00, 0xFF, 0xFF, 0x04, 0x00, 0x00],
        ] as [[UInt8]]
    )
    func wrongLengthIsAnError(bytes: [UInt8]) {
        #expect(throws: PacketDecodingError.self) { try ManagementEvent(decoding: bytes.rawSpan) }
    }

    @Test func randomBytesNeverTrap() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<10_000 {
            let bytes = (0..<Int.random(in: 0...320, using: &random)).map { _ in UInt8.random(in: 0...255) }
            _ = try? ManagementEvent(decoding: bytes.rawSpan)
            _ = try? ManagementInformation(decoding: bytes.rawSpan)
        }
    }
}
