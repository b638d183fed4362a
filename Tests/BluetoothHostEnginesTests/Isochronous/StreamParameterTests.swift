import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The parameters of isochronous groups")
struct StreamParameterTests {
    /// Expects an invalid argument, or no error.
    private func expect(_ isValid: Bool, _ body: () throws(HostError) -> Void) {
        do throws(HostError) {
            try body()
            #expect(isValid)
        } catch {
            guard case .invalidArgument = error, !isValid else {
                Issue.record("\(error)")
                return
            }
        }
    }

    @Test(
        "The parameters of a connected group are in their ranges",
        arguments: [
            (ConnectedGroupParameters(), true),
            (ConnectedGroupParameters(sduInterval: .microseconds(254)), false),
            (ConnectedGroupParameters(sduInterval: .microseconds(255)), true),
            (ConnectedGroupParameters(sduInterval: .microseconds(1_048_575)), true),
            (ConnectedGroupParameters(sduInterval: .microseconds(1_048_576)), false),
            (ConnectedGroupParameters(maximumLatency: .microseconds(4999)), false),
            (ConnectedGroupParameters(maximumLatency: .milliseconds(5)), true),
            (ConnectedGroupParameters(maximumLatency: .seconds(4)), true),
            (ConnectedGroupParameters(maximumLatency: .milliseconds(4001)), false),
            (ConnectedGroupParameters(maximumSDUToPeripheral: -1), false),
            (ConnectedGroupParameters(maximumSDUToPeripheral: 0), true),
            (ConnectedGroupParameters(maximumSDUToPeripheral: 4095), true),
            (ConnectedGroupParameters(maximumSDUToPeripheral: 4096), false),
            (ConnectedGroupParameters(maximumSDUToCentral: -1), false),
            (ConnectedGroupParameters(maximumSDUToCentral: 0), true),
            (ConnectedGroupParameters(maximumSDUToCentral: 4095), true),
            (ConnectedGroupParameters(maximumSDUToCentral: 4096), false),
            (ConnectedGroupParameters(maximumSDUToPeripheral: 0, maximumSDUToCentral: 0), false),
            (ConnectedGroupParameters(retransmissions: -1), false),
            (ConnectedGroupParameters(retransmissions: 0), true),
            (ConnectedGroupParameters(retransmissions: 30), true),
            (ConnectedGroupParameters(retransmissions: 31), false),
            (ConnectedGroupParameters(phys: []), false),
            (ConnectedGroupParameters(phys: .leCoded), true),
        ] as [(ConnectedGroupParameters, Bool)]
    )
    func parametersOfAConnectedGroupAreInTheirRanges(_ parameters: ConnectedGroupParameters, isValid: Bool) {
        expect(isValid) { () throws(HostError) in _ = try parameters.command(cigID: 0, streamCount: 1) }
    }

    @Test("A group of no streams, or of more than a command holds, is refused", arguments: [0, 27])
    func groupHasAsManyStreamsAsACommandHolds(count: Int) {
        var engine = IsochronousEngine()
        let link = LinkIdentifier(handle: 0x0040, serial: 1)
        expect(false) { () throws(HostError) in
            _ = try engine.open(1, to: Array(repeating: link, count: count), ConnectedGroupParameters())
        }
    }

    @Test func commandOfAConnectedGroupHasItsParameters() throws {
        let parameters = ConnectedGroupParameters(
            sduInterval: .milliseconds(20),
            maximumLatency: .milliseconds(123),
            maximumSDUToPeripheral: 50,
            maximumSDUToCentral: 60,
            retransmissions: 7,
            phys: .leCoded
        )
        let command = try parameters.command(cigID: 9, streamCount: 2)
        #expect(command.cigID == 9)
        #expect(command.sduIntervalCToP == 20_000 && command.sduIntervalPToC == 20_000)
        #expect(command.maxTransportLatencyCToP == 123 && command.maxTransportLatencyPToC == 123)
        #expect(command.streams.map(\.cisID) == [0, 1])
        for stream in command.streams {
            #expect(stream.maxSDUCToP == 50 && stream.maxSDUPToC == 60)
            #expect(stream.rtnCToP == 7 && stream.rtnPToC == 7)
            #expect(stream.phyCToP == .leCoded && stream.phyPToC == .leCoded)
        }
    }

    @Test(
        "The parameters of a broadcast group are in their ranges",
        arguments: [
            (BroadcastGroupParameters(), true),
            (BroadcastGroupParameters(streamCount: 0), false),
            (BroadcastGroupParameters(streamCount: 31), true),
            (BroadcastGroupParameters(streamCount: 32), false),
            (BroadcastGroupParameters(sduInterval: .microseconds(254)), false),
            (BroadcastGroupParameters(sduInterval: .microseconds(255)), true),
            (BroadcastGroupParameters(sduInterval: .microseconds(1_048_575)), true),
            (BroadcastGroupParameters(sduInterval: .microseconds(1_048_576)), false),
            (BroadcastGroupParameters(maximumSDU: 0), false),
            (BroadcastGroupParameters(maximumSDU: 1), true),
            (BroadcastGroupParameters(maximumSDU: 4095), true),
            (BroadcastGroupParameters(maximumSDU: 4096), false),
            (BroadcastGroupParameters(maximumLatency: .microseconds(4999)), false),
            (BroadcastGroupParameters(maximumLatency: .milliseconds(5)), true),
            (BroadcastGroupParameters(maximumLatency: .seconds(4)), true),
            (BroadcastGroupParameters(maximumLatency: .milliseconds(4001)), false),
            (BroadcastGroupParameters(retransmissions: -1), false),
            (BroadcastGroupParameters(retransmissions: 30), true),
            (BroadcastGroupParameters(retransmissions: 31), false),
            (BroadcastGroupParameters(phys: []), false),
        ] as [(BroadcastGroupParameters, Bool)]
    )
    func parametersOfABroadcastGroupAreInTheirRanges(_ parameters: BroadcastGroupParameters, isValid: Bool) {
        expect(isValid) { () throws(HostError) in _ = try parameters.command(bigHandle: 0, advertisingHandle: 0) }
    }

    @Test func commandOfABroadcastGroupHasItsParameters() throws {
        let parameters = BroadcastGroupParameters(
            streamCount: 3,
            sduInterval: .milliseconds(20),
            maximumSDU: 60,
            maximumLatency: .milliseconds(123),
            retransmissions: 7,
            phys: .leCoded
        )
        let command = try parameters.command(bigHandle: 1, advertisingHandle: 2)
        #expect(command.bigHandle == 1 && command.advertisingHandle == 2 && command.numBIS == 3)
        #expect(command.sduInterval == 20_000 && command.maxSDU == 60)
        #expect(command.maxTransportLatency == 123 && command.rtn == 7 && command.phy == .leCoded)
        #expect(command.broadcastCode == nil)
    }

    @Test(
        "The parameters of a reception are in their ranges",
        arguments: [
            (BroadcastReceptionParameters(), true),
            (BroadcastReceptionParameters(streams: []), false),
            (BroadcastReceptionParameters(streams: [0]), false),
            (BroadcastReceptionParameters(streams: [31, 1]), true),
            (BroadcastReceptionParameters(streams: [32]), false),
            (BroadcastReceptionParameters(streams: [1, 1]), false),
            (BroadcastReceptionParameters(timeout: .milliseconds(99)), false),
            (BroadcastReceptionParameters(timeout: .milliseconds(100)), true),
            (BroadcastReceptionParameters(timeout: .milliseconds(163_840)), true),
            (BroadcastReceptionParameters(timeout: .milliseconds(163_841)), false),
        ] as [(BroadcastReceptionParameters, Bool)]
    )
    func parametersOfAReceptionAreInTheirRanges(_ parameters: BroadcastReceptionParameters, isValid: Bool) {
        expect(isValid) { () throws(HostError) in try parameters.check() }
    }

    @Test func commandOfAReceptionHasItsParameters() {
        let parameters = BroadcastReceptionParameters(timeout: .milliseconds(1230))
        let command = parameters.command(bigHandle: 1, syncHandle: 2, streams: [3])
        #expect(command.bigHandle == 1 && command.syncHandle == 2 && command.streams == [3])
        #expect(command.bigSyncTimeout == 123 && command.broadcastCode == nil)
    }
}
