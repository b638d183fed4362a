import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@Suite("A command")
struct CommandTests {
    @Test(arguments: CommandSample.all)
    func commandIsEncodedAsSpecified(_ sample: CommandSample) {
        #expect(sample.encoded().hexadecimal == sample.packet.hexadecimal)
    }

    @Test(arguments: CommandSample.all)
    func commandIsDecodedToWhatWasEncoded(_ sample: CommandSample) throws {
        #expect(try sample.isDecoded(sample.packet))
        #expect(try sample.reencoded(Array(sample.packet.dropFirst(3))) == Array(sample.packet.dropFirst(3)))
    }

    @Test(arguments: CommandSample.all)
    func truncatedOrOverlongCommandIsRefused(_ sample: CommandSample) {
        for count in 0..<sample.packet.count {
            #expect(throws: PacketDecodingError.self) { try sample.isDecoded(Array(sample.packet.prefix(count))) }
        }
        let parameters = Array(sample.packet.dropFirst(3))
        for count in 0..<parameters.count {
            #expect(throws: PacketDecodingError.self) { try sample.reencoded(Array(parameters.prefix(count))) }
        }
        #expect(throws: PacketDecodingError.self) { try sample.isDecoded(sample.packet + [0]) }
        #expect(throws: PacketDecodingError.self) { try sample.reencoded(parameters + [0]) }
    }

    @Test(arguments: CommandSample.all)
    func commandWithAFlippedBitIsRefusedOrKeepsItsLength(_ sample: CommandSample) {
        for parameters in bitFlips(of: Array(sample.packet.dropFirst(3))) {
            guard let reencoded = try? sample.reencoded(parameters) else { continue }
            #expect(reencoded.count == parameters.count)
        }
    }

    @Test func eachCommandHasAnOpcodeOfItsOwn() {
        let named = Dictionary(grouping: CommandSample.all, by: \.opcode)
        for (_, samples) in named { #expect(Set(samples.map(\.testDescription)).count == 1) }
    }

    @Test func packetOfAnotherCommandIsRefused() throws {
        let reset = bytes("030c00")
        #expect(throws: PacketDecodingError.invalidValue(0x0C03, field: "Opcode")) {
            _ = try CommandPacket(decoding: reset.span.bytes).decode(LERand.self)
        }
    }

    @Test func commandsThatStartSomethingAreAnsweredByCommandStatus() {
        #expect(Disconnect.isAnsweredByStatus)
        #expect(LECreateConnection.isAnsweredByStatus)
        #expect(LEGenerateDHKey.isAnsweredByStatus)
        #expect(LESubrateRequest.isAnsweredByStatus)
        #expect(!LESetDefaultSubrate.isAnsweredByStatus)
        #expect(!Reset.isAnsweredByStatus)
        #expect(!LESetScanEnable.isAnsweredByStatus)
        #expect(!HostNumberOfCompletedPackets.isAnsweredByStatus)
    }

    @Test func reservedValueIsRefused() {
        #expect(throws: PacketDecodingError.invalidValue(2, field: "LE_Scan_Enable")) {
            try LESetScanEnable(decoding: bytes("0200").span.bytes)
        }
        #expect(throws: PacketDecodingError.invalidValue(4, field: "Own_Address_Type")) {
            try LESetScanParameters(decoding: bytes("00100010000400").span.bytes)
        }
        #expect(throws: PacketDecodingError.invalidValue(2, field: "Scanning_PHYs")) {
            try LESetExtendedScanParameters(decoding: bytes("0000020010001000").span.bytes)
        }
        #expect(throws: PacketDecodingError.invalidValue(0, field: "Scanning_PHYs")) {
            try LESetExtendedScanParameters(decoding: bytes("000000").span.bytes)
        }
        #expect(throws: PacketDecodingError.invalidLength(32, field: "Advertising_Data")) {
            try LESetAdvertisingData(decoding: ([32] + [UInt8](repeating: 0, count: 31)).span.bytes)
        }
    }

    @Test(arguments: [UInt8](0...0xFF))
    func filterPolicyWithDecisionPDUsIsKeptAndAReservedOneIsRefused(_ value: UInt8) throws {
        let scan = [0x00, value] + bytes("010010001000")
        if value < 0x08 || (0x0C...0x0F).contains(value) {
            let command = try LESetExtendedScanParameters(decoding: scan.span.bytes)
            #expect(command.scanningFilterPolicy.rawValue == value)
        } else {
            #expect(throws: PacketDecodingError.invalidValue(UInt64(value), field: "Scanning_Filter_Policy")) {
                try LESetExtendedScanParameters(decoding: scan.span.bytes)
            }
        }
        let initiation = [value] + bytes("000000000000000001" + "60006000180028000000f40100000000")
        if value < 0x05 {
            let command = try LEExtendedCreateConnection(decoding: initiation.span.bytes)
            #expect(command.initiatorFilterPolicy.rawValue == value)
        } else {
            #expect(throws: PacketDecodingError.invalidValue(UInt64(value), field: "Initiator_Filter_Policy")) {
                try LEExtendedCreateConnection(decoding: initiation.span.bytes)
            }
        }
    }

    @Test func commandWithoutParametersForAnyPHYUsesLE1M() throws {
        let connection = LEExtendedCreateConnection(le1M: nil)
        #expect(connection.initiatingPHYs == .le1M)
        let connectionBytes = PacketBuffer.bytes { connection.encode(into: &$0) }
        #expect(try LEExtendedCreateConnection(decoding: connectionBytes.span.bytes).le1M == .init())
        let scan = LESetExtendedScanParameters(le1M: nil)
        #expect(scan.scanningPHYs == .le1M)
        let scanBytes = PacketBuffer.bytes { scan.encode(into: &$0) }
        #expect(try LESetExtendedScanParameters(decoding: scanBytes.span.bytes).le1M == .init())
        // LE 2M alone is not scanned. It is sent as it is, and the controller refuses it.
        #expect(LEExtendedCreateConnection(le1M: nil, le2M: .init()).initiatingPHYs == .le2M)
    }

    @Test func oversizedContentsAreCutToTheLengthOfTheirFields() {
        let long = [UInt8](repeating: 0xAB, count: 700)
        #expect(LegacyAdvertisingData(long).bytes.count == 31)
        #expect(AdvertisingDataFragment(long).bytes.count == 251)
        #expect(PeriodicAdvertisingDataFragment(long).bytes.count == 252)
        let key = P256PublicKey(x: long, y: [0x01])
        #expect(key.x.count == 32)
        #expect(key.y == [0x01] + [UInt8](repeating: 0, count: 31))
        let sets = [LESetExtendedAdvertisingEnable.AdvertisingSet](repeating: .init(advertisingHandle: 1), count: 99)
        #expect(LESetExtendedAdvertisingEnable(enable: true, sets: sets).sets.count == 63)
        let completions = [HostNumberOfCompletedPackets.Completion](
            repeating: .init(connectionHandle: 1, hostNumCompletedPackets: 1),
            count: 99
        )
        let packet = PacketBuffer.bytes { HostNumberOfCompletedPackets(completions).encodePacket(into: &$0) }
        #expect(packet.count == 3 + 1 + 63 * 4)
        #expect(packet[2] == 253)
        let fragment = LESetExtendedAdvertisingData(advertisingHandle: 0, advertisingData: .init(long))
        #expect(PacketBuffer.bytes { fragment.encodePacket(into: &$0) }.count == 3 + 255)
    }
}
