import BLEATT
import BluetoothTypes
import Testing

private let start = Instant(nanoseconds: 0)

@Suite("An enhanced bearer")
struct EnhancedBearerTests {
    private func receive(_ bytes: [UInt8], _ bearer: inout Bearer) -> Bearer.Inbound {
        bearer.receive(bytes.rawSpan)
    }

    @Test(
        "ATT_MTU is the smaller MTU of the channel, and at least 64",
        arguments: [(517, 100, 100), (100, 517, 100), (64, 64, 64), (517, 23, 64)]
    )
    func mtuIsTheSmallerMTUOfTheChannel(mtu: Int, peerMTU: Int, expected: Int) {
        #expect(Bearer(enhancedWithMTU: mtu, peerMTU: peerMTU).mtu == expected)
    }

    @Test func reconfiguredChannelChangesTheMTU() {
        var bearer = Bearer(enhancedWithMTU: 517, peerMTU: 64)
        bearer.channelMTUsChanged(to: 517, peerMTU: 200)
        #expect(bearer.mtu == 200)
    }

    @Test func mtusAreNotExchanged() {
        var bearer = Bearer(enhancedWithMTU: 517, peerMTU: 100)
        #expect(throws: BearerError.mtuExchanged) { try bearer.requestWillBeSent(.exchangeMTURequest, at: start) }
        #expect(receive([0x02, 0x17, 0], &bearer) == .unsupportedRequest(opcode: 0x02))
        #expect(receive([0x0A, 3, 0], &bearer) == .request(.readRequest))
    }

    @Test func signedWriteIsAViolationAndOtherCommandsAreNot() {
        var bearer = Bearer(enhancedWithMTU: 517, peerMTU: 100)
        let signed: [UInt8] = [0xD2, 3, 0, 1] + [UInt8](repeating: 0, count: 12)
        #expect(receive(signed, &bearer) == .violation(.signedWriteOnEnhancedBearer))
        #expect(receive([0x52, 3, 0, 1], &bearer) == .command(.writeCommand))
        var fixed = Bearer()
        #expect(receive(signed, &fixed) == .command(.signedWriteCommand))
    }
}
