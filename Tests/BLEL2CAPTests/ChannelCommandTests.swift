import BLEByteCoding
import BLEL2CAP
import Testing

/// A command's bytes on the air, and the code that decodes its data and encodes it again.
private struct Sample: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let bytes: [UInt8]
    /// Decodes the data, compares it with the expectation, and encodes it with identifier 0x21.
    let recode: @Sendable (RawSpan) throws(PacketDecodingError) -> (isExpected: Bool, bytes: [UInt8])
    /// Shorter lengths of the data that are complete commands with fewer channels.
    var otherLengths: Set<Int> = []
}

@Suite("Commands for credit-based channels")
struct ChannelCommandTests {
    private static let samples: [Sample] = [
        Sample(
            testDescription: "LE Credit Based Connection Request",
            bytes: [0x14, 0x21, 0x0A, 0x00, 0x80, 0x00, 0x40, 0x00, 0x00, 0x08, 0xF7, 0x00, 0x0A, 0x00],
            recode: { data throws(PacketDecodingError) in
                let command = try LECreditBasedConnectionRequest(decoding: data)
                let expected = LECreditBasedConnectionRequest(
                    spsm: SPSM(rawValue: 0x80),
                    source: channel(0x40),
                    mtu: 2048,
                    mps: 247,
                    initialCredits: 10
                )
                return (command == expected, PacketBuffer.bytes { command.encode(identifier: 0x21, into: &$0) })
            }
        ),
        Sample(
            testDescription: "LE Credit Based Connection Response",
            bytes: [0x15, 0x21, 0x0A, 0x00, 0x41, 0x00, 0x17, 0x00, 0x17, 0x00, 0xFF, 0xFF, 0x00, 0x00],
            recode: { data throws(PacketDecodingError) in
                let command = try LECreditBasedConnectionResponse(decoding: data)
                let expected = LECreditBasedConnectionResponse(
                    destination: channel(0x41),
                    mtu: 23,
                    mps: 23,
                    initialCredits: 65535,
                    result: .successful
                )
                return (command == expected, PacketBuffer.bytes { command.encode(identifier: 0x21, into: &$0) })
            }
        ),
        Sample(
            testDescription: "LE Credit Based Connection Response that refuses",
            bytes: [0x15, 0x21, 0x0A, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x00],
            recode: { data throws(PacketDecodingError) in
                let command = try LECreditBasedConnectionResponse(decoding: data)
                let expected = LECreditBasedConnectionResponse(refusing: .spsmNotSupported)
                return (command == expected, PacketBuffer.bytes { command.encode(identifier: 0x21, into: &$0) })
            }
        ),
        Sample(
            testDescription: "Flow Control Credit Indication",
            bytes: [0x16, 0x21, 0x04, 0x00, 0x7F, 0x00, 0x01, 0x02],
            recode: { data throws(PacketDecodingError) in
                let command = try FlowControlCredit(decoding: data)
                let expected = FlowControlCredit(channel: channel(0x7F), credits: 0x0201)
                return (command == expected, PacketBuffer.bytes { command.encode(identifier: 0x21, into: &$0) })
            }
        ),
        Sample(
            testDescription: "Credit Based Connection Request for five channels",
            bytes: [
                0x17, 0x21, 0x12, 0x00, 0x27, 0x00, 0x40, 0x00, 0xFD, 0xFF, 0x01, 0x00,
                0x40, 0x00, 0x41, 0x00, 0x42, 0x00, 0x43, 0x00, 0x44, 0x00,
            ],
            recode: { data throws(PacketDecodingError) in
                let command = try CreditBasedConnectionRequest(decoding: data)
                let expected = CreditBasedConnectionRequest(
                    spsm: .enhancedAttribute,
                    mtu: 64,
                    mps: 65533,
                    initialCredits: 1,
                    sources: list(0x40, 0x41, 0x42, 0x43, 0x44)
                )
                return (command == expected, PacketBuffer.bytes { command.encode(identifier: 0x21, into: &$0) })
            },
            otherLengths: [8, 10, 12, 14, 16]
        ),
        Sample(
            testDescription: "Credit Based Connection Response that refuses one of two",
            bytes: [
                0x18, 0x21, 0x0C, 0x00, 0x40, 0x00, 0x41, 0x00, 0x05, 0x00, 0x04, 0x00, 0x50, 0x00, 0x00, 0x00,
            ],
            recode: { data throws(PacketDecodingError) in
                let command = try CreditBasedConnectionResponse(decoding: data)
                let expected = CreditBasedConnectionResponse(
                    mtu: 64,
                    mps: 65,
                    initialCredits: 5,
                    result: .noResourcesAvailable,
                    destinations: list(0x50, 0)
                )
                return (command == expected, PacketBuffer.bytes { command.encode(identifier: 0x21, into: &$0) })
            },
            otherLengths: [8, 10]
        ),
        Sample(
            testDescription: "Credit Based Reconfigure Request",
            bytes: [0x19, 0x21, 0x08, 0x00, 0x00, 0x02, 0x80, 0x00, 0x40, 0x00, 0x41, 0x00],
            recode: { data throws(PacketDecodingError) in
                let command = try CreditBasedReconfigureRequest(decoding: data)
                let expected = CreditBasedReconfigureRequest(mtu: 512, mps: 128, destinations: list(0x40, 0x41))
                return (command == expected, PacketBuffer.bytes { command.encode(identifier: 0x21, into: &$0) })
            },
            otherLengths: [4, 6]
        ),
        Sample(
            testDescription: "Credit Based Reconfigure Response",
            bytes: [0x1A, 0x21, 0x02, 0x00, 0x02, 0x00],
            recode: { data throws(PacketDecodingError) in
                let command = try CreditBasedReconfigureResponse(decoding: data)
                let expected = CreditBasedReconfigureResponse(result: .reductionOfMPSNotAllowed)
                return (command == expected, PacketBuffer.bytes { command.encode(identifier: 0x21, into: &$0) })
            }
        ),
        Sample(
            testDescription: "Disconnection Request",
            bytes: [0x06, 0x21, 0x04, 0x00, 0x41, 0x00, 0x40, 0x00],
            recode: { data throws(PacketDecodingError) in
                let command = try DisconnectionRequest(decoding: data)
                let expected = DisconnectionRequest(destination: channel(0x41), source: channel(0x40))
                return (command == expected, PacketBuffer.bytes { command.encode(identifier: 0x21, into: &$0) })
            }
        ),
        Sample(
            testDescription: "Disconnection Response",
            bytes: [0x07, 0x21, 0x04, 0x00, 0x41, 0x00, 0x40, 0x00],
            recode: { data throws(PacketDecodingError) in
                let command = try DisconnectionResponse(decoding: data)
                let expected = DisconnectionResponse(destination: channel(0x41), source: channel(0x40))
                return (command == expected, PacketBuffer.bytes { command.encode(identifier: 0x21, into: &$0) })
            }
        ),
    ]

    @Test("Each command is decoded field by field and encoded to the same bytes", arguments: samples)
    private func commandIsDecodedByFieldAndEncodedToTheSameBytes(sample: Sample) throws {
        let command = try SignalingCommand(decoding: sample.bytes.rawSpan)
        #expect(command.identifier == 0x21)
        let (isExpected, bytes) = try sample.recode(command.data)
        #expect(isExpected)
        #expect(bytes == sample.bytes)
    }

    @Test("Data that is truncated or followed by more is an error", arguments: samples)
    private func truncatedOrOverlongDataIsAnError(sample: Sample) {
        let data = Array(sample.bytes.dropFirst(4))
        for length in data.indices where !sample.otherLengths.contains(length) {
            #expect(throws: PacketDecodingError.self, "\(length) bytes") {
                _ = try sample.recode(Array(data.prefix(length)).rawSpan)
            }
        }
        #expect(throws: PacketDecodingError.self) { _ = try sample.recode((data + [0]).rawSpan) }
    }

    @Test("A sixth channel does not fit in a command")
    func sixthChannelDoesNotFitInACommand() {
        let data: [UInt8] = [0x00, 0x02, 0x80, 0x00] + Array(repeating: 0x40, count: 12)
        #expect(throws: PacketDecodingError.invalidLength(12, field: "list of channel identifiers")) {
            _ = try CreditBasedReconfigureRequest(decoding: data.rawSpan)
        }
        #expect(ChannelIdentifierList((0x40...0x45).map(channel)) == nil)
        var full = list(1, 2, 3, 4, 5)
        let isAppended = full.append(channel(6))
        #expect(!isAppended && full == list(1, 2, 3, 4, 5))
    }
}
