import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEDissection

/// Packets whose Swift types are written by hand. Their layouts are a second, independent description.
@Suite("The layout of a packet with a type by hand")
struct ByHandLayoutTests {
    static let publicKey = String(repeating: "a5", count: 32) + String(repeating: "5a", count: 32)

    @Test(
        arguments: [
            "350c09024000030041000201",
            "262040" + publicKey,
            "39200a01020302010504000000",
            "41200d01010501020101010002020102",
            "43202a0001019a78563412f0050101020103010401050106010701080101030203030304030503060307030803",
            "62202101102700204e0001010128003c000202640000000201020003c800780001020304",
            "642009026000400061004100",
            "68201f0102031027006400410004020100010102030405060708090a0b0c0d0e0f10",
            "6b201a012300010102030405060708090a0b0c0d0e0f10026400020103",
            "6e200f600001000300000000030201020506",
        ]
    )
    func layoutReadsACommandToItsLastByte(digits: String) throws {
        let packet = try #require([UInt8](hexadecimal: digits))
        let opcode = UInt16(packet[0]) | UInt16(packet[1]) << 8
        try expectWholeReading(Array(packet.dropFirst(3)), CommandLayouts.parameters[opcode])
    }

    @Test(
        arguments: [
            "1309024000030041000201",
            "3e23020200019a78563412f00d02010603030d18050953776966ce0400ef3207dc1b00007f",
            "3e420800" + publicKey,
            "3e220900" + publicKey.prefix(64),
            "3e120b0101019a78563412f0fe55443322114ab0",
            "3e410d021300019a78563412f00100ff7fce0000000000000000000d02010603030d180509537769"
                + "66240000ef3207dc1b00030209f9b050000155443322114a020102",
            "3e150f2301f9b0ff010d02010603030d18050953776966",
            "3e171b00013412006745000203010002640008000260006100",
            "3e131d000167450003010002640008000260006100",
        ]
    )
    func layoutReadsAnEventToItsLastByte(digits: String) throws {
        let packet = try #require([UInt8](hexadecimal: digits))
        if packet[0] == Event.leMetaCode {
            try expectWholeReading(Array(packet.dropFirst(3)), EventLayouts.leEvents[UInt16(packet[2])])
        } else {
            try expectWholeReading(Array(packet.dropFirst(2)), EventLayouts.events[UInt16(packet[0])])
        }
    }

    private func expectWholeReading(_ parameters: [UInt8], _ layout: ParameterLayout?) throws {
        let layout = try #require(layout)
        var reader = ByteReader(parameters.rawSpan)
        var fields: [Field] = []
        let error = layout.read(&reader, into: &fields)
        #expect(error == nil)
        #expect(fields.isEmpty == false)
    }
}
