import BLEHCI
import Testing

@Suite("Every packet with a type")
struct SampleCoverageTests {
    @Test func everyCommandWithATypeHasASample() {
        let sampled = Set(CommandSample.all.map(\.opcode.rawValue))
        let missing = TypedCodes.commands.filter { !sampled.contains($0) }
        #expect(missing.map { "\(HCIOpcode(rawValue: $0))" } == [])
    }

    @Test func everyReturnTypeHasASample() {
        let sampled = Set(returnSamples.map { UInt16($0.packet[3]) | UInt16($0.packet[4]) << 8 })
        let missing = TypedCodes.returns.filter { !sampled.contains($0) }
        #expect(missing.map { "\(HCIOpcode(rawValue: $0))" } == [])
    }

    @Test func everyEventWithATypeHasASample() {
        let sampled = Set(EventTests.packets.map { $0[0] })
        let missing = TypedCodes.events.filter { !sampled.contains($0) }
        #expect(missing.map { Event.name(code: $0) } == [])
        let sampledSubevents = Set(EventTests.packets.filter { $0[0] == Event.leMetaCode }.map { $0[2] })
        let missingSubevents = TypedCodes.subevents.filter { !sampledSubevents.contains($0) }
        #expect(missingSubevents.map { Event.name(code: Event.leMetaCode, subeventCode: $0) } == [])
    }
}
