import BLEByteCoding

/// Replaces keys in captured packets by zeros, so that a capture can be shared.
///
/// # Masked contents
///
/// - Keys in commands and events, such as those of LE Enable Encryption, LE Long Term Key Request Reply, LE Add Device
///   To Resolving List, LE Set Decision Instructions and LE Generate DHKey Complete.
/// - The Security Manager's key distribution: Encryption Information, Identity Information and Signing Information.
/// - Pairing Confirm and Pairing Random. The key of LE legacy pairing can be computed from them and a known or guessed
///   passkey, and they reveal the passkey of LE Secure Connections.
/// - Notes of Linux's monitor channel that come from programs: log lines, and the management channel's commands and
///   events.
/// - All notes of PacketLogger.
///
/// Packets keep their length. So a masked capture can be decoded, but pairings cannot be replayed from it. Application
/// data is not masked.
public struct CaptureKeyMask: Sendable {
    /// The fragments in one direction of one connection, which form L2CAP PDUs.
    private struct Stream: Hashable {
        let adapterIndex: UInt16
        let handle: UInt16
        let direction: CaptureDirection
    }

    /// A PDU with fragments that have not passed yet.
    private struct PartialPDU {
        /// Its first bytes: the basic L2CAP header and the Security Manager's command code.
        var head: [UInt8] = []
        /// The number of bytes that have passed.
        var count = 0

        /// The length of the PDU with its header, in bytes; nil while it is unknown.
        var length: Int? { head.count < 2 ? nil : 4 + (Int(head[0]) | Int(head[1]) << 8) }
    }

    /// Maximum number of PDUs that are tracked at a time.
    private static let limit = 1024

    private var partial: [Stream: PartialPDU] = [:]

    public init() {}

    /// Masks a packet, given without its H4 indicator.
    ///
    /// - Returns: the packet with its keys replaced, or nil if nothing in it is masked.
    public mutating func mask(
        _ kind: CapturedPacketKind,
        _ direction: CaptureDirection?,
        _ bytes: RawSpan,
        adapterIndex: UInt16 = 0
    ) -> [UInt8]? {
        switch kind {
        case .command:
            guard let opcode = bytes.littleEndian(at: 0) else { return nil }
            if opcode == 0x2081 { return maskDecisionInstructions(bytes) }
            guard let range = Self.secretParameters(of: opcode) else { return nil }
            return zeroed(bytes, from: 3 + range.lowerBound, to: range.upperBound.map { 3 + $0 })
        case .event: return maskEvent(bytes)
        case .acl: return maskData(bytes, direction ?? .controllerToHost, adapterIndex)
        case .synchronous, .iso: return nil
        }
    }

    /// Masks a note.
    ///
    /// - Returns: as many zeros as the note has bytes, if a program or PacketLogger wrote it; nil for other notes.
    public func mask(_ note: CaptureNote, _ bytes: RawSpan) -> [UInt8]? {
        switch note {
        case .monitor(.userLogging), .monitor(.controlCommand), .monitor(.controlEvent), .packetLogger:
            [UInt8](repeating: 0, count: bytes.byteCount)
        case .monitor, .otherNetwork: nil
        }
    }

    // MARK: Commands and events

    private typealias Secrets = (lowerBound: Int, upperBound: Int?)

    /// The range of the keys in a command's parameters (Vol 4, Part E, 7). Without an upper bound, it extends to the
    /// end.
    private static func secretParameters(of opcode: UInt16) -> Secrets? {
        switch opcode {
        case 0x040B: (6, 22)  // Link Key Request Reply
        case 0x040D: (6, 23)  // PIN Code Request Reply
        case 0x042E: (6, 10)  // User Passkey Request Reply
        case 0x0430, 0x0445: (6, nil)  // Remote OOB Data Request Reply, and the extended one
        case 0x0C11: (1, nil)  // Write Stored Link Key
        case 0x2017: (0, nil)  // LE Encrypt
        case 0x2019: (12, 28)  // LE Enable Encryption
        case 0x201A: (2, 18)  // LE Long Term Key Request Reply
        case 0x2027: (7, 39)  // LE Add Device To Resolving List
        case 0x2068: (15, 31)  // LE Create BIG
        case 0x2069: (20, 36)  // LE Create BIG Test
        case 0x206B: (4, 20)  // LE BIG Create Sync
        default: nil
        }
    }

    /// Masks the keys of resolvable tags in LE Set Decision Instructions (Vol 4, Part E, 7.8.145).
    private func maskDecisionInstructions(_ bytes: RawSpan) -> [UInt8]? {
        var copy = [UInt8](copying: bytes)
        var isMasked = false
        // A test consists of flags, a field and 16 bytes of parameters. Field 0 is the resolvable tag. The first test
        // follows the number of tests.
        for start in stride(from: 4, to: copy.count - 1, by: 18) where copy[start + 1] == 0 {
            for index in start + 2..<min(start + 18, copy.count) {
                copy[index] = 0
                isMasked = true
            }
        }
        return isMasked ? copy : nil
    }

    private func maskEvent(_ bytes: RawSpan) -> [UInt8]? {
        switch bytes[checked: 0] {
        case 0x0E:  // Command Complete
            switch bytes.littleEndian(at: 3) {
            case 0x2017, 0x2018, 0x0C57, 0x0C7D:  // LE Encrypt, LE Rand, Read Local OOB Data and the extended one
                return zeroed(bytes, from: 6, to: nil)
            default: return nil
            }
        case 0x15: return zeroed(bytes, from: 3, to: nil)  // Return Link Keys
        case 0x18: return zeroed(bytes, from: 8, to: 24)  // Link Key Notification
        case 0x3B: return zeroed(bytes, from: 8, to: 12)  // User Passkey Notification
        case 0x3E where bytes[checked: 2] == 0x09: return zeroed(bytes, from: 4, to: 36)  // LE Generate DHKey Complete
        default: return nil
        }
    }

    private func zeroed(_ bytes: RawSpan, from start: Int, to end: Int?) -> [UInt8]? {
        var copy = [UInt8](copying: bytes)
        let end = min(end ?? copy.count, copy.count)
        guard start < end else { return nil }
        for index in start..<end { copy[index] = 0 }
        return copy
    }

    // MARK: Data

    /// Masks the Security Manager's PDUs in a fragment, wherever the sender has split them.
    private mutating func maskData(
        _ bytes: RawSpan,
        _ direction: CaptureDirection,
        _ adapterIndex: UInt16
    ) -> [UInt8]? {
        guard let header = bytes.littleEndian(at: 0), bytes.byteCount > 4 else { return nil }
        let stream = Stream(adapterIndex: adapterIndex, handle: header & 0x0FFF, direction: direction)
        let isContinuation = header >> 12 & 0b11 == 0b01
        // Most packets are whole PDUs of other channels.
        if !isContinuation, bytes.byteCount >= 8, !Self.isSecurityManager(bytes.littleEndian(at: 6)) {
            let isWhole = bytes.littleEndian(at: 4).map { Int($0) + 8 <= bytes.byteCount } ?? false
            if isWhole {
                if !partial.isEmpty { partial[stream] = nil }
                return nil
            }
        }
        guard var pdu = isContinuation ? partial.removeValue(forKey: stream) : PartialPDU() else { return nil }
        var copy = [UInt8](copying: bytes)
        var isMasked = false
        for index in 4..<copy.count {
            if pdu.count < 5 {
                pdu.head.append(copy[index])
            } else if Self.isSecret(pdu.head) {
                copy[index] = 0
                isMasked = true
            }
            pdu.count += 1
        }
        let isDone = pdu.length.map { pdu.count >= $0 } ?? false
        if !isDone {
            if partial.count >= Self.limit { partial.removeAll() }
            partial[stream] = pdu
        } else {
            partial[stream] = nil
        }
        return isMasked ? copy : nil
    }

    private static func isSecurityManager(_ channel: UInt16?) -> Bool { channel == 0x0006 || channel == 0x0007 }

    /// Whether a PDU carries a key, or data from which a key can be computed.
    private static func isSecret(_ head: [UInt8]) -> Bool {
        guard head.count == 5, isSecurityManager(UInt16(head[2]) | UInt16(head[3]) << 8) else { return false }
        // Pairing Confirm, Pairing Random, Encryption, Identity and Signing Information (Vol 3, Part H, 3.5 and 3.6).
        return [0x03, 0x04, 0x06, 0x08, 0x0A].contains(head[4])
    }
}

extension RawSpan {
    fileprivate func littleEndian(at offset: Int) -> UInt16? {
        guard let low = self[checked: offset], let high = self[checked: offset + 1] else { return nil }
        return UInt16(low) | UInt16(high) << 8
    }
}
