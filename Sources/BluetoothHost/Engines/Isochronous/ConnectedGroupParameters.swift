import BLEHCI
import BluetoothTypes

/// The parameters of a group of connected isochronous streams (Vol 4, Part E, 7.8.97). All streams of a group have the
/// same ones.
public struct ConnectedGroupParameters: Hashable, Sendable {
    /// The time between two SDUs in each direction, 255 µs to 1,048,575 µs. PDUs are unframed if the times of SDUs and
    /// of events can agree, and framed otherwise, as with 44.1 kHz audio (Vol 6, Part G, 2).
    public var sduInterval: Duration
    /// The longest time for an SDU, 5 ms to 4 s, in whole milliseconds.
    public var maximumLatency: Duration
    /// The longest SDU to the peripheral in bytes, 0 to 4,095; 0 if the central sends none.
    public var maximumSDUToPeripheral: Int
    /// The longest SDU to the central in bytes, 0 to 4,095; 0 if the peripheral sends none.
    public var maximumSDUToCentral: Int
    /// How often a PDU may be sent again, 0 to 30; a recommendation to the controller.
    public var retransmissions: Int
    /// The PHYs that may be used.
    public var phys: PHYSet

    /// Creates parameters. By default, both sides may send 120 bytes each 10 ms.
    public init(
        sduInterval: Duration = .milliseconds(10),
        maximumLatency: Duration = .milliseconds(40),
        maximumSDUToPeripheral: Int = 120,
        maximumSDUToCentral: Int = 120,
        retransmissions: Int = 2,
        phys: PHYSet = [.le1M, .le2M]
    ) {
        self.sduInterval = sduInterval
        self.maximumLatency = maximumLatency
        self.maximumSDUToPeripheral = maximumSDUToPeripheral
        self.maximumSDUToCentral = maximumSDUToCentral
        self.retransmissions = retransmissions
        self.phys = phys
    }
}

extension ConnectedGroupParameters {
    /// The command that creates a group with these parameters.
    func command(cigID: UInt8, streamCount: Int) throws(HostError) -> LESetCIGParameters {
        guard (.microseconds(255) ... .microseconds(1_048_575)).contains(sduInterval) else {
            throw .invalidArgument("the SDU interval is 255 µs to 1,048,575 µs, not \(sduInterval)")
        }
        guard (.milliseconds(5) ... .seconds(4)).contains(maximumLatency) else {
            throw .invalidArgument("the maximum latency is 5 ms to 4 s, not \(maximumLatency)")
        }
        let interval = sduInterval.wholeNanoseconds / 1000
        let latency = maximumLatency.wholeNanoseconds / 1_000_000
        for length in [maximumSDUToPeripheral, maximumSDUToCentral] {
            guard (0...ISODataLoadHeader.maximumSDULength).contains(length) else {
                throw .invalidArgument("the maximum SDU is 0 to 4,095 bytes, not \(length)")
            }
        }
        guard maximumSDUToPeripheral > 0 || maximumSDUToCentral > 0 else {
            throw .invalidArgument("the maximum SDU is 0 bytes in both directions; at least one side must send")
        }
        guard (0...30).contains(retransmissions) else {
            throw .invalidArgument("the number of retransmissions is 0 to 30, not \(retransmissions)")
        }
        guard !phys.isEmpty else { throw .invalidArgument("a stream needs at least one PHY") }
        let streams = (0..<streamCount).map {
            LESetCIGParameters.CIS(
                cisID: UInt8(truncatingIfNeeded: $0),
                maxSDUCToP: UInt16(maximumSDUToPeripheral),
                maxSDUPToC: UInt16(maximumSDUToCentral),
                phyCToP: phys,
                phyPToC: phys,
                rtnCToP: UInt8(retransmissions),
                rtnPToC: UInt8(retransmissions)
            )
        }
        return LESetCIGParameters(
            cigID: cigID,
            sduIntervalCToP: UInt32(interval),
            sduIntervalPToC: UInt32(interval),
            framing: ISOFraming.of(
                sduInterval: Int(interval),
                maximumSDU: max(maximumSDUToPeripheral, maximumSDUToCentral),
                latency: Int(latency) * 1000,
                burstLimit: 15
            ),
            maxTransportLatencyCToP: UInt16(latency),
            maxTransportLatencyPToC: UInt16(latency),
            streams: streams
        )
    }
}
