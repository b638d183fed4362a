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
