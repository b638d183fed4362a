import BLEByteCoding
import BLEHCI

/// Puts the fragments of received SDUs of one stream together.
///
/// An SDU has at most ``ISODataLoadHeader/maximumSDULength`` bytes, which bounds the memory.
struct SDUAssembler {
    enum Outcome: Equatable {
        /// The SDU continues in another packet.
        case incomplete
        /// An SDU is complete.
        case unit(IsochronousSDU)
        /// The packet, or the SDU that it ends, does not match what came before. It is dropped.
        case violation
    }

    private var header: ISODataLoadHeader?
    private var bytes: [UInt8] = []

    mutating func receive(_ packet: borrowing ISOPacket) -> Outcome {
        if let loadHeader = packet.loadHeader {
            let wasIncomplete = header != nil
            header = loadHeader
            bytes = [UInt8](copying: packet.payload)
            guard bytes.count <= Int(loadHeader.sduLength) else { return drop() }
            if packet.header.packetBoundaryFlag == .complete { return finish() }
            return wasIncomplete ? .violation : .incomplete
        }
        guard let header, bytes.count + packet.payload.byteCount <= Int(header.sduLength) else { return drop() }
        bytes.append(contentsOf: [UInt8](copying: packet.payload))
        return packet.header.packetBoundaryFlag == .last ? finish() : .incomplete
    }

    private mutating func drop() -> Outcome {
        header = nil
        bytes = []
        return .violation
    }

    private mutating func finish() -> Outcome {
        guard let header else { return .violation }
        let status: IsochronousSDU.Status =
            switch header.packetStatus {
            case .valid: .valid
            case .possiblyInvalid, .reserved: .possiblyInvalid
            case .lost: .lost
            }
        // Only an SDU that was not received completely may be shorter than it says.
        guard status != .valid || bytes.count == Int(header.sduLength) else { return drop() }
        defer {
            self.header = nil
            bytes = []
        }
        return .unit(
            IsochronousSDU(
                data: bytes,
                sequenceNumber: header.packetSequenceNumber,
                timeStamp: header.timeStamp,
                status: status
            )
        )
    }
}
