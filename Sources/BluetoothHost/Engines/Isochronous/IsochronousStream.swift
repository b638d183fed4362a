import BLEHCI
import BluetoothTypes

/// The identifier of one isochronous stream, unique during the host's life. Connection handles are reused.
public struct IsochronousStreamIdentifier: Hashable, Sendable {
    let value: UInt64
}

/// A received service data unit (SDU) of an isochronous stream (Vol 6, Part G, 1).
public struct IsochronousSDU: Hashable, Sendable {
    /// Whether an SDU was received without errors.
    public enum Status: Hashable, Sendable {
        /// The SDU is complete and correct.
        case valid
        /// The SDU may have errors.
        case possiblyInvalid
        /// The SDU, or a part of it, was not received. ``IsochronousSDU/data`` has the received part, often nothing.
        case lost
    }

    /// The bytes of the SDU, at most 4,095.
    public let data: [UInt8]
    /// The number of the SDU in its stream, by the controller; continues at 0 after 65,535.
    public let sequenceNumber: UInt16
    /// The time of the SDU in microseconds, by the controller's clock; nil if the controller gives none.
    public let timeStamp: UInt32?
    /// Whether the SDU was received without errors.
    public let status: Status
    /// The number of SDUs directly before this one that were dropped, because the reader was too slow.
    public package(set) var droppedBefore = 0

    package init(data: [UInt8], sequenceNumber: UInt16, timeStamp: UInt32?, status: Status) {
        self.data = data
        self.sequenceNumber = sequenceNumber
        self.timeStamp = timeStamp
        self.status = status
    }
}

/// The parameters of a group of connected isochronous streams (Vol 4, Part E, 7.8.97). All streams of a group have the
/// same ones.
public struct ConnectedGroupParameters: Hashable, Sendable {
    /// The time between two SDUs in each direction, 255 µs to 1,048,575 µs.
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
            maxTransportLatencyCToP: UInt16(latency),
            maxTransportLatencyPToC: UInt16(latency),
            streams: streams
        )
    }
}

/// The properties of an established stream.
package struct IsochronousStreamInformation: Hashable, Sendable {
    package let identifier: IsochronousStreamIdentifier
    /// The connection that carries the stream; nil for a broadcast stream.
    package let link: LinkIdentifier?
    /// The place of a broadcast stream; nil for a connected stream.
    package var broadcast: BroadcastMembership?
    /// Whether this host may send SDUs.
    package let canSend: Bool
    /// Whether this host may receive SDUs.
    package let canReceive: Bool
    /// The longest PDU that this host sends, in bytes.
    package let maximumPDU: Int
    /// The time between two events of the stream.
    package let interval: Duration
    /// The time between two SDUs that this host sends.
    package let sduInterval: Duration
    /// The longest SDU that this host may send, in bytes.
    package let maximumSDU: Int
}

/// The place of a broadcast isochronous stream in its group.
package struct BroadcastMembership: Hashable, Sendable {
    /// The number of the stream, 1 to 31.
    package let number: Int
    /// What the train has announced; nil for a group that this host sends.
    package let information: BroadcastGroupInformation?
}

/// A request of a central for a stream, as the host of the peripheral gets it.
package struct IsochronousStreamRequest: Hashable, Sendable {
    /// Names the request until it is answered.
    package let number: UInt64
    package let link: LinkIdentifier
    package let cigID: UInt8
    package let cisID: UInt8
}

/// What the caller of an ``IsochronousEngine`` does after an input. It performs the effects in their order.
enum IsochronousEffect: Equatable {
    case send(CommandRequest)
    /// The streams of an opening, or of a request that was accepted, are established.
    case opened(UInt64, [IsochronousStreamInformation])
    /// An opening, or the acceptance of a request, has failed.
    case failed(UInt64, HostError)
    case requested(IsochronousStreamRequest)
    /// A stream has ended that was reported as opened.
    case ended(IsochronousStreamIdentifier, DisconnectionReason)
    /// A broadcast group is no longer received, and no longer needs the synchronization with its train.
    case receptionEnded(SynchronizationIdentifier)
}

/// What the answer to a command of an ``IsochronousEngine`` is for.
enum IsochronousStep: Equatable {
    case setParameters(cigID: UInt8)
    case createStreams(cigID: UInt8)
    case removeGroup(cigID: UInt8)
    case accept(ConnectionHandle)
    case setUpPath(ConnectionHandle)
    case disconnect(ConnectionHandle)
    case broadcast(BroadcastStep)
}

/// What the answer to a command of a broadcast group is for; groups are named by BIG_Handle.
enum BroadcastStep: Equatable {
    case create(UInt8)
    case receive(UInt8)
    case setUpPath(ConnectionHandle)
    case terminate(UInt8)
    case stopReceiving(UInt8)
}

extension LECISEstablished {
    /// The time between two SDUs of the peripheral (Vol 6, Part G, 2.1).
    ///
    /// The event does not have it. The burst number counts PDUs. An SDU that fits one PDU has one; a longer one is assumed to
    /// be the only one of its ISO interval.
    var sduIntervalOfPeripheral: Duration {
        let interval = Duration.microseconds(1250 * Int(isoInterval))
        return maxPDUPToC < 251 ? interval / max(1, Int(bnPToC)) : interval
    }
}
