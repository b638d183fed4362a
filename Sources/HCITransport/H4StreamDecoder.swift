import ByteCoding
import HCI

/// Cuts a stream of octets into HCI packets by their H4 indicators and lengths (Vol 4, Part A, 2).
///
/// The decoder holds the stream's unread end; a packet is handed on where it lies. H4 has no way to find its framing again
/// but Reset (Vol 4, Part A, 4), so an octet that is no indicator breaks a stream. A serial line, which may start in the
/// middle of a packet or lose octets, searches instead for what looks like an event or ACL packet, so that the answer to
/// that Reset gets through; it too breaks when the search finds nothing for long.
public struct H4StreamDecoder {
    /// What to do with an octet that starts no packet.
    public enum Recovery: Sendable {
        case fail
        case search
    }

    /// Who writes the stream, and so what cannot be in it: a controller sends no commands, a host no events.
    public enum Sender: Sendable {
        case controller
        case host

        fileprivate func sends(_ type: PacketType) -> Bool {
            self == .controller ? type != .command : type != .event
        }
    }

    /// Thrown where a stream has lost its framing.
    public struct BrokenStream: Error, Hashable, Sendable {
        /// What stands where a packet indicator should.
        public let octet: UInt8
    }

    /// Longer than any HCI packet.
    private static let capacity = 1 + 4 + 0xFFFF
    /// How many octets a search passes over before it gives up.
    static let searchLimit = 1 << 16
    /// The longest ACL packet from which a search picks up the framing: a wrong length would swallow as much.
    private static let plausibleACLLength = 2048

    private let recovery: Recovery
    private let sender: Sender
    private var buffer: [UInt8]
    private var start = 0
    private var end = 0
    /// How far the search has gone; nil while the framing holds.
    private var searched: Int?
    /// Whether there was room for more than what was read last.
    private(set) var hadRoom = false
    /// How many octets have been passed over in search of a packet, in all.
    public private(set) var skippedOctets = 0

    public init(recovery: Recovery, sender: Sender = .controller) {
        self.recovery = recovery
        self.sender = sender
        searched = recovery == .search ? 0 : nil
        buffer = [UInt8](repeating: 0, count: 16 << 10)
    }

    /// Reads once with `read`, which fills an array from an offset on and returns how much it read.
    mutating func fill(_ read: (inout [UInt8], Int) -> Result<Int, Errno>) -> Result<Int, Errno> {
        makeRoom()
        let result = read(&buffer, end)
        if case .success(let count) = result { end += count }
        hadRoom = end < buffer.count
        return result
    }

    /// Appends octets as if they had been read.
    public mutating func append(_ bytes: [UInt8]) {
        for byte in bytes {
            makeRoom()
            buffer[end] = byte
            end += 1
        }
    }

    /// Hands the packets that are complete to `deliver`, until it returns false.
    ///
    /// - Throws: the octet that is no packet indicator, where the decoder does not search or has searched in vain.
    public mutating func forEachPacket(_ deliver: (RawSpan) -> Bool) throws(BrokenStream) {
        var position = start
        var searched = searched
        var skipped = 0
        defer {
            self.searched = searched
            skippedOctets += skipped
            start = position == end ? 0 : position
            end = position == end ? 0 : end
        }
        while position < end {
            let rest = buffer.rawSpan.extracting(position..<end)
            switch H4StreamDecoder.look(at: rest, from: sender, isSearching: searched != nil) {
            case .packet(let length):
                searched = nil
                position += length
                if !deliver(rest.extracting(first: length)) { return }
            case .incomplete:
                return
            case .noPacket(let octet):
                let distance = (searched ?? 0) + 1
                guard recovery == .search, distance <= H4StreamDecoder.searchLimit else {
                    throw BrokenStream(octet: octet)
                }
                searched = distance
                position += 1
                skipped += 1
            }
        }
    }

    private enum Sight {
        case packet(length: Int)
        case incomplete
        case noPacket(octet: UInt8)
    }

    private static func look(at rest: RawSpan, from sender: Sender, isSearching: Bool) -> Sight {
        guard let octet = rest[checked: 0] else { return .incomplete }
        guard let type = PacketType(rawValue: octet), sender.sends(type) else { return .noPacket(octet: octet) }
        guard let payloadLength = type.payloadLength(header: rest.extracting(droppingFirst: 1)) else {
            return .incomplete
        }
        let length = 1 + type.headerLength + payloadLength
        if isSearching {
            guard isPlausible(type, rest, payloadLength) else { return .noPacket(octet: octet) }
            if let next = rest[checked: length], PacketType(rawValue: next).map(sender.sends) != true {
                return .noPacket(octet: octet)
            }
        }
        return length <= rest.byteCount ? .packet(length: length) : .incomplete
    }

    /// Whether what follows an indicator that a search has met looks like a header.
    private static func isPlausible(_ type: PacketType, _ rest: RawSpan, _ payloadLength: Int) -> Bool {
        switch (type, rest[checked: 1] ?? 0, rest[checked: 2] ?? 0) {
        // Command Complete and Command Status (Vol 4, Part E, 7.7.14 and 7.7.15).
        case (.event, 0x0E, _): payloadLength >= 3
        case (.event, 0x0F, _): payloadLength == 4
        // The event codes that exist, LE Meta among them, and the vendors'.
        case (.event, 0x01...0x59, _), (.event, 0xFF, _): payloadLength >= 1
        // A connection handle up to 0x0EFF, the first fragment of a PDU or a later one, no broadcast (5.4.2).
        case (.acl, _, let high):
            high & 0x0F <= 0x0E && (high >> 4 == 0b01 || high >> 4 == 0b10)
                && (1...plausibleACLLength).contains(payloadLength)
        default: false
        }
    }

    /// Moves what is unread to the front where that leaves more room, and grows where it fills the buffer.
    private mutating func makeRoom() {
        if start > 0, end > buffer.count / 2 {
            let unread = start..<end
            unsafe buffer.withUnsafeMutableBytes { bytes in
                unsafe bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[unread]))
            }
            start = 0
            end = unread.count
        }
        if end == buffer.count {
            buffer.append(contentsOf: repeatElement(0, count: min(buffer.count, H4StreamDecoder.capacity)))
        }
    }
}
