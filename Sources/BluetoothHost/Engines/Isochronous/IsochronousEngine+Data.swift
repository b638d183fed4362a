import BLEHCI

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
        guard let stream = streams[handle], stream.phase == .open, let information = stream.information else {
            return .stray
        }
        switch streams[handle]?.assembler.receive(packet) {
        case .unit(let sdu): return .received(information.identifier, sdu)
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
    }

    /// Queues an SDU.
    ///
    /// - Precondition: the SDU has at most ``ISODataLoadHeader/maximumSDULength`` bytes.
    mutating func send(
        _ sdu: [UInt8],
        timeStamp: UInt32?,
        on identifier: IsochronousStreamIdentifier
    ) -> SendOutcome {
        guard let handle = handle(of: identifier), streams[handle]?.information?.canSend == true else {
            return .notOpen
        }
        guard sender.hasRoom(handle) else { return .full }
        sender.enqueue(sdu, timeStamp: timeStamp, on: handle)
        return .taken
    }
}
