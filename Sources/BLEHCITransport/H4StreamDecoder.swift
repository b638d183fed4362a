import BLEByteCoding
import BLEHCI

/// Splits a stream of bytes into HCI packets by their H4 indicators and lengths (Vol 4, Part A, 2).
///
/// The decoder holds the unread end of the stream, and delivers each packet as a span of it. H4 can find its framing
/// again only by a Reset (Vol 4, Part A, 4). So a byte that is not a packet indicator breaks a stream.
///
/// A serial line may start in the middle of a packet, or lose bytes. So its decoder searches for bytes that look like
/// an event or ACL packet, and finds the answer to that Reset. The stream is also broken if a long search finds
/// nothing, or if the caller does not permit a search after a packet.
public struct H4StreamDecoder {
    /// The reaction to a byte that starts no packet.
    public enum Recovery: Sendable {
        /// The stream is broken.
        case fail
        /// The decoder searches for bytes that look like a packet.
        case search
    }

    /// The writer of the stream. It determines the possible packets.
    public enum Sender: Sendable {
        /// A controller, which sends no commands.
        case controller
        /// A host, which sends no events.
        case host

        fileprivate func sends(_ type: PacketType) -> Bool {
            self == .controller ? type != .command : type != .event
        }
    }

    /// An error thrown if a stream has lost its framing.
    public struct BrokenStream: Error, Hashable, Sendable {
        /// The byte in place of a packet indicator.
        public let octet: UInt8
    }

    /// The length of the longest HCI packet: indicator, ACL header and data. The buffer grows by at most this much at
    /// once.
    private static let capacity = 1 + 4 + 0xFFFF
    /// The number of bytes that a search passes over before it fails.
    static let searchLimit = 1 << 16
    /// The longest ACL payload, in bytes, that a search accepts. A wrong length would swallow as many bytes.
    private static let plausibleACLLength = 2048

    private let recovery: Recovery
    private let sender: Sender
    private var buffer: [UInt8]
    private var start = 0
    private var end = 0
    /// The number of bytes passed over in the current search; nil while the framing holds.
    private var searched: Int?
    /// Whether the last read did not fill the buffer.
    private(set) var hadRoom = false
    /// The total number of bytes passed over in searches.
    public private(set) var skippedBytes = 0

    /// Creates a decoder of a stream from its start, or from any place in it if `recovery` is ``Recovery/search``.
    public init(recovery: Recovery, sender: Sender = .controller) {
        self.recovery = recovery
        self.sender = sender
        searched = recovery == .search ? 0 : nil
        buffer = [UInt8](repeating: 0, count: 16 << 10)
    }

    /// Reads once with `read`, which fills an array from an offset and returns the number of bytes read.
    mutating func fill(_ read: (inout [UInt8], Int) -> Result<Int, Errno>) -> Result<Int, Errno> {
        makeRoom()
        let result = read(&buffer, end)
        if case .success(let count) = result { end += count }
        hadRoom = end < buffer.count
        return result
    }

    /// Appends bytes as if they had been read.
    public mutating func append(_ bytes: [UInt8]) {
        for byte in bytes {
            makeRoom()
            buffer[end] = byte
            end += 1
        }
    }

    /// Passes the complete packets to `deliver`, until it returns false.
    ///
    /// - Parameters:
    ///   - deliver: receives one packet. Returns whether to continue.
    ///   - maySearch: called if the framing is lost after a packet. Returns whether to search for it. A decoder that
    ///     does not search never calls it.
    /// - Throws: ``BrokenStream`` with a byte that is not a packet indicator, if the decoder does not search, may not
    ///   search, or its search has reached its limit.
    public mutating func forEachPacket(
        _ deliver: (RawSpan) -> Bool,
        maySearch: () -> Bool = { true }
    ) throws(BrokenStream) {
        var position = start
        var searched = searched
        var skipped = 0
        defer {
            self.searched = searched
            skippedBytes += skipped
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
                guard recovery == .search, distance <= H4StreamDecoder.searchLimit, searched != nil || maySearch()
                else { throw BrokenStream(octet: octet) }
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

    /// Whether the bytes after an indicator, found by a search, look like a header.
    private static func isPlausible(_ type: PacketType, _ rest: RawSpan, _ payloadLength: Int) -> Bool {
        switch (type, rest[checked: 1] ?? 0, rest[checked: 2] ?? 0) {
        // Command Complete and Command Status (Vol 4, Part E, 7.7.14 and 7.7.15).
        case (.event, 0x0E, _): payloadLength >= 3
        case (.event, 0x0F, _): payloadLength == 4
        // The defined event codes, LE Meta among them, and the vendor-specific code.
        case (.event, 0x01...0x59, _), (.event, 0xFF, _): payloadLength >= 1
        // A connection handle up to 0x0EFF, a first or continuing fragment of a PDU, point-to-point (5.4.2).
        case (.acl, _, let high):
            high & 0x0F <= 0x0E && (high >> 4 == 0b01 || high >> 4 == 0b10)
                && (1...plausibleACLLength).contains(payloadLength)
        default: false
        }
    }

    /// Moves unread bytes to the front if the second half of the buffer is in use, and grows a full buffer.
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
