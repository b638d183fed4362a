import BLEHCI
import BluetoothTypes

// The data of open streams.
extension IsochronousEngine {
    /// What became of a received ISO packet.
    enum Reception: Equatable {
        case incomplete
        case received(IsochronousStreamIdentifier, IsochronousSDU)
        /// The packet breaks the rules of fragments.
        case violation
        /// No open stream has the packet's handle.
        case stray
    }

    /// Handles a received ISO packet.
    mutating func receive(_ packet: borrowing ISOPacket) -> Reception {
        let handle = packet.header.connectionHandle
        if let stream = broadcasts.streams[handle] { return receive(packet, on: handle, stream) }
        guard let stream = streams[handle], stream.phase == .open, let information = stream.information else {
            return .stray
        }
        switch streams[handle]?.assembler.receive(packet) {
        case .unit(let sdu): return .received(information.identifier, sdu)
        case .incomplete: return .incomplete
        case .violation, nil: return .violation
        }
    }

    private mutating func receive(
        _ packet: borrowing ISOPacket,
        on handle: ConnectionHandle,
        _ stream: BroadcastGroups.Stream
    ) -> Reception {
        guard broadcasts.groups[stream.bigHandle]?.phase == .open, !stream.isClosed else { return .stray }
        switch broadcasts.streams[handle]?.assembler.receive(packet) {
        case .unit(let sdu): return .received(stream.information.identifier, sdu)
        case .incomplete: return .incomplete
        case .violation, nil: return .violation
        }
    }

    enum SendOutcome: Equatable {
        case taken
        /// The stream's queue is full.
        case full
        /// The stream is not open, or does not send.
        case notOpen
        /// The SDU is longer than this maximum of the stream.
        case tooLong(maximum: Int)
    }

    /// Queues an SDU.
    mutating func send(
        _ sdu: [UInt8],
        timeStamp: UInt32?,
        on identifier: IsochronousStreamIdentifier,
        at now: Instant
    ) -> SendOutcome {
        guard let handle = handle(of: identifier),
            let information = information(of: handle), information.canSend
        else { return .notOpen }
        let maximum = min(information.maximumSDU, sender.longestSDU)
        guard sdu.count <= maximum else { return .tooLong(maximum: maximum) }
        guard sender.hasRoom(handle) else { return .full }
        sender.enqueue(sdu, timeStamp: timeStamp, on: handle, at: now)
        return .taken
    }

    /// Whether the stream's queue takes another SDU.
    func hasRoom(on identifier: IsochronousStreamIdentifier) -> Bool {
        handle(of: identifier).map { sender.hasRoom($0) } ?? false
    }
}
