import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Groups of connected isochronous streams")
struct StreamGroupTests {
    private static let first: ConnectionHandle = 0x0E60
    private static let second: ConnectionHandle = 0x0E61

    /// A command for a group with an SDU from the central every 10 ms.
    private static func parameters(
        _ streams: [LESetCIGParameters.CIS],
        interval: UInt32 = 10_000
    ) -> LESetCIGParameters {
        LESetCIGParameters(
            cigID: 1,
            sduIntervalCToP: interval,
            sduIntervalPToC: interval,
            maxTransportLatencyCToP: 40,
            maxTransportLatencyPToC: 40,
            streams: streams
        )
    }

    private static func stream(
        _ identifier: UInt8,
        maxSDU: UInt16 = 100,
        rtn: UInt8 = 2
    ) -> LESetCIGParameters.CIS {
        .init(cisID: identifier, maxSDUCToP: maxSDU, maxSDUPToC: 0, rtnCToP: rtn, rtnPToC: rtn)
    }

    /// The answer to LE Set CIG Parameters with the handles of streams.
    private static func answer(_ handles: UInt8...) -> [[UInt8]] {
        let pairs = handles.flatMap { handle -> [UInt8] in [handle, 0x0E] }
        return [
            [0x04, 0x0E, UInt8(6 + pairs.count), 0x01, 0x62, 0x20, 0x00, 0x01, UInt8(handles.count)] + pairs
        ]
    }

    /// Two connected controllers whose hosts support streams.
    private static func world() -> LinkWorld {
        LinkWorld(prepare: { world in
            for index in 0...1 { world.succeed(LESetHostFeature(bitNumber: 32, bitValue: true), at: index) }
        })
    }

    @Test func streamsAreChangedAndAddedWithTheHandlesOfKnownOnes() throws {
        let world = Self.world()
        #expect(world.world.send(Self.parameters([Self.stream(2)]), to: 0) == Self.answer(0x60))
        let command = Self.parameters([Self.stream(9), Self.stream(2, maxSDU: 50)], interval: 20_000)
        #expect(world.world.send(command, to: 0) == Self.answer(0x61, 0x60))
        let streams = world.central.isochronous.streams
        let changed = try #require(streams[Self.first]).parameters
        #expect(changed.cis.cisID == 2 && changed.central.maximumSDU == 50)
        #expect(try #require(streams[Self.second]).parameters.cis.cisID == 9)
        // The parameters of the group apply to streams that the command does not name.
        world.world.succeed(Self.parameters([Self.stream(9)], interval: 7_500), at: 0)
        let kept = try #require(world.central.isochronous.streams[Self.first]).parameters
        #expect(kept.central.maximumSDU == 50 && kept.central.sduInterval == 7_500 && kept.isoInterval == 6)
    }

    @Test func groupIsCreatedWithoutStreamsAndFilledLater() {
        let world = Self.world()
        #expect(world.world.send(Self.parameters([]), to: 0) == Self.answer())
        #expect(world.world.send(Self.parameters([Self.stream(2)]), to: 0) == Self.answer(0x60))
        #expect(world.world.send(Self.parameters([]), to: 0) == Self.answer())
        #expect(world.central.isochronous.groups[1]?.handles == [Self.first])
        world.world.succeed(LERemoveCIG(cigID: 1), at: 0)
        #expect(world.central.isochronous.groups.isEmpty && world.central.isochronous.streams.isEmpty)
    }

    @Test func refusedCommandChangesNothing() throws {
        let world = Self.world()
        world.world.succeed(Self.parameters([Self.stream(2)]), at: 0)
        // More PDUs than fit an ISO interval.
        let tooLong = Self.parameters([Self.stream(2), Self.stream(3, maxSDU: 4095)])
        #expect(world.world.status(of: tooLong, to: 0) == .unsupportedFeatureOrParameterValue)
        for start: UInt8 in [0, 26] {
            let count: UInt8 = start == 0 ? 26 : 6
            let streams = (start..<start + count).map { Self.stream($0) }
            let status = world.world.status(of: Self.parameters(streams), to: 0)
            #expect(status == (start == 0 ? .success : .connectionRejectedDueToLimitedResources))
        }
        #expect(world.central.isochronous.groups[1]?.handles.count == 26)
        #expect(try #require(world.central.isochronous.streams[Self.first]).parameters.central.maximumSDU == 100)
    }

    @Test("A group whose stream has been created can no longer be changed, until it is removed")
    func groupWithACreatedStreamCannotBeChanged() {
        let world = Self.world()
        let parameters = Self.parameters([Self.stream(2)])
        let pair = LECreateCIS.CIS(cisConnectionHandle: Self.first, aclConnectionHandle: LinkWorld.handle)
        world.world.succeed(parameters, LECreateCIS(streams: [pair]), at: 0)
        #expect(world.world.status(of: parameters, to: 0) == .commandDisallowed)
        world.run(.milliseconds(100))
        let rejection = LERejectCISRequest(
            connectionHandle: Self.first,
            reason: .connectionRejectedDueToLimitedResources
        )
        world.world.succeed(rejection, at: 1)
        world.run(.milliseconds(100))
        #expect(world.world.status(of: parameters, to: 0) == .commandDisallowed)
        world.world.succeed(LERemoveCIG(cigID: 1), parameters, at: 0)
    }

    @Test func streamMayHaveAnyNumberOfRetransmissions() {
        let world = Self.world()
        world.world.succeed(Self.parameters([Self.stream(2, rtn: 0xFF)]), at: 0)
    }
}
