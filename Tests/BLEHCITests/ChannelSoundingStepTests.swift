import BLEByteCoding
import BLEHCI
import Testing

@Suite("Results of Channel Sounding")
struct ChannelSoundingStepTests {
    /// Three steps, of the modes 0, 1 and 2; bytes of Bumble 0.0.236.
    static let result =
        "3e2d314000020201030000c0f60100000103" + "00050500ce01ff7f" + "0106060006ce341201" + "02070920ff0780000080132b"

    private func withSteps(_ packet: String, _ body: (inout ChannelSoundingSteps) throws -> Void) throws {
        let packet = bytes(packet)
        guard case .leCSSubeventResult(let event) = try Event(decoding: packet.span.bytes) else {
            Issue.record("not recognised")
            return
        }
        var steps = event.steps
        try body(&steps)
    }

    @Test func eventGivesItsFieldsBeforeTheSteps() throws {
        let packet = bytes(Self.result)
        guard case .leCSSubeventResult(let event) = try Event(decoding: packet.span.bytes) else {
            Issue.record("not recognised")
            return
        }
        #expect(event.connectionHandle == 0x0040 && event.configID == 2)
        #expect(event.startACLConnEventCounter == 0x0102 && event.procedureCounter == 3)
        #expect(event.frequencyCompensation == 0xC000 && event.referencePowerLevel == -10)
        #expect(event.progress == ChannelSoundingProgress(procedureDoneStatus: .partial))
        #expect(event.numAntennaPaths == 1 && event.numStepsReported == 3)
    }

    @Test func eachModeHasItsMeasurements() throws {
        try withSteps(Self.result) { steps in
            guard let first = try steps.next() else { throw PacketDecodingError.trailingBytes(count: 0) }
            let calibration = try first.packet(antennaPaths: 1)
            #expect(first.mode == .mode0 && first.channel == 5)
            #expect(calibration?.rssi == -50 && calibration?.antenna == 1 && calibration?.quality == 0)
            #expect(calibration?.frequencyOffset == -1 && calibration?.nadm == nil)
            #expect(try first.tones(antennaPaths: 1).count == 0)

            guard let second = try steps.next() else { throw PacketDecodingError.trailingBytes(count: 1) }
            let timing = try second.packet(antennaPaths: 1)
            #expect(second.mode == .mode1 && second.channel == 6)
            #expect(timing?.nadm == 6 && timing?.timeDifference == 0x1234 && timing?.phases == nil)

            guard let third = try steps.next() else { throw PacketDecodingError.trailingBytes(count: 2) }
            let tones = try third.tones(antennaPaths: 1)
            #expect(third.mode == .mode2 && third.channel == 7)
            #expect(try third.packet(antennaPaths: 1) == nil)
            #expect(tones.count == 2 && tones.antennaPermutation == 0x20)
            #expect(tones[0]?.inPhase == 2047 && tones[0]?.quadrature == -2048 && tones[0]?.quality == 0)
            #expect(tones[1]?.inPhase == 0 && tones[1]?.quadrature == 0x138 && tones[1]?.quality == 0x2B)
            #expect(tones[2] == nil && tones[-1] == nil)
            let end = try steps.next() == nil
            #expect(end)
        }
    }

    @Test func stepOfMode3HasAPacketWithPhasesAndTones() throws {
        let data = bytes("20ffce0080020100000000f0ff00" + "01" + "ff07800001008013")
        let step = ChannelSoundingStep(mode: .mode3, channel: 76, data: data.rawSpan)
        let packet = try step.packet(antennaPaths: 1)
        #expect(packet?.quality == 0x20 && packet?.nadm == 0xFF && packet?.rssi == -50 && packet?.antenna == 2)
        #expect(packet?.timeDifference == nil)
        #expect(packet?.phases?.first.inPhase == 1 && packet?.phases?.second.inPhase == 0)
        #expect(packet?.phases?.second.quadrature == -1)
        let tones = try step.tones(antennaPaths: 1)
        #expect(tones.count == 2 && tones.antennaPermutation == 1)
        // The same bytes with another number of antenna paths are a packet without phases and more tones.
        #expect(try step.packet(antennaPaths: 3)?.phases == nil)
        #expect(try step.tones(antennaPaths: 3).count == 4)
        #expect(throws: PacketDecodingError.invalidLength(23, field: "Step_Data_Length")) {
            try step.packet(antennaPaths: 2)
        }
    }

    @Test(arguments: [1, 5, 9, 17]) func stepOfMode2HasOneToneForEachPathAndOneMore(count: Int) throws {
        let data = [UInt8](repeating: 0, count: count)
        let step = ChannelSoundingStep(mode: .mode2, channel: 5, data: data.rawSpan)
        #expect(throws: PacketDecodingError.invalidLength(count, field: "Step_Data_Length")) {
            _ = try step.tones(antennaPaths: 2).count
        }
        // The number of tones is not known without that of the antenna paths.
        #expect(try step.tones(antennaPaths: 0).count == count / 4)
        let complete = [UInt8](repeating: 0, count: 13)
        let other = ChannelSoundingStep(mode: .mode2, channel: 5, data: complete.rawSpan)
        #expect(try other.tones(antennaPaths: 2).count == 3)
    }

    @Test(arguments: 0...3 as ClosedRange<UInt8>) func stepWithoutDataHasNoMeasurements(mode: UInt8) throws {
        let step = ChannelSoundingStep(mode: .init(rawValue: mode), channel: 5, data: RawSpan())
        #expect(try step.packet(antennaPaths: 1) == nil)
        #expect(try step.tones(antennaPaths: 1).count == 0)
    }

    @Test(arguments: [0, 1, 2, 3] as [UInt8]) func truncatedStepIsRefused(mode: UInt8) {
        let data: [UInt8] = [0x20, 0x01]
        let step = ChannelSoundingStep(mode: .init(rawValue: mode), channel: 5, data: data.rawSpan)
        #expect(throws: PacketDecodingError.self) {
            _ = try step.packet(antennaPaths: 1)
            _ = try step.tones(antennaPaths: 1).count
        }
    }

    @Test func everyDataOfEveryModeIsDecodedOrRefused() {
        for mode in UInt8(0)...4 {
            for count in 0...40 {
                let data = [UInt8](repeating: 0xA5, count: count)
                let step = ChannelSoundingStep(mode: .init(rawValue: mode), channel: 5, data: data.rawSpan)
                for paths in [0, 1, 4, 255] as [UInt8] {
                    _ = try? step.packet(antennaPaths: paths)
                    guard let tones = try? step.tones(antennaPaths: paths) else { continue }
                    #expect(tones.count * 4 < max(count, 1))
                }
            }
        }
    }

    @Test func missingAndFurtherBytesEndTheStepsWithAnError() throws {
        let packet = bytes(Self.result)
        for count in 3..<packet.count {
            var shortened = Array(packet.prefix(count))
            shortened[1] = UInt8(count - 2)
            #expect(throws: PacketDecodingError.self) { try walk(shortened) }
        }
        #expect(throws: PacketDecodingError.trailingBytes(count: 1)) {
            var longer = packet + [0]
            longer[1] += 1
            _ = try walk(longer)
        }
    }

    @Test func unknownAndMissingValuesHaveNone() throws {
        let calibration = bytes("007f0100c0")
        let step = ChannelSoundingStep(mode: .mode0, channel: 5, data: calibration.rawSpan)
        let packet = try step.packet(antennaPaths: 0)
        #expect(packet?.rssi == nil && packet?.frequencyOffset == nil)
        let reflector = ChannelSoundingStep(mode: .mode0, channel: 5, data: calibration.rawSpan.extracting(first: 3))
        #expect(try reflector.packet(antennaPaths: 0)?.frequencyOffset == nil)
        let timing = bytes("00ffce341201" + "ffffffff" + "ffffffff")
        let sounding = ChannelSoundingStep(mode: .mode1, channel: 5, data: timing.rawSpan)
        let measured = try sounding.packet(antennaPaths: 0)
        #expect(measured?.phases == nil && measured?.timeDifference == 0x1234)
    }

    @Test func overrideParametersAreCutToTheLengthOfACommand() {
        let command = LECSTest(
            mainMode: .mode1,
            role: .initiator,
            subeventLength: 1250,
            overrideParameters: [UInt8](repeating: 1, count: 300)
        )
        let packet = PacketBuffer.bytes { command.encodePacket(into: &$0) }
        #expect(packet.count == 3 + 255 && packet[2] == 255)
    }

    @Test func channelsKnowTheirBitsAndErrorsTheirNumber() {
        let channels = ChannelSoundingChannels.all
        #expect((0..<80).count { channels.contains($0) } == 72)
        #expect(![0, 1, 23, 24, 25, 77, 78, 79, -1].contains { channels.contains($0) })
        #expect(FrequencyActuationErrors([1]).values == [1] + [Int8](repeating: 0, count: 71))
        #expect(FrequencyActuationErrors([Int8](repeating: 2, count: 80)).values.count == 72)
        #expect(ChannelSoundingRoles.reflector.contains(ChannelSoundingRole.reflector))
        #expect(!ChannelSoundingRoles.reflector.contains(ChannelSoundingRole.initiator))
    }
}
