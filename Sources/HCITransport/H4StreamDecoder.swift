import ByteCoding
import HCI

/// Cuts a stream of octets into HCI packets by their H4 indicators and lengths (Vol 4, Part A, 2).
///
/// The decoder holds the stream's unread end; a packet is handed on where it lies. H4 has no way to find its framing again
/// but Reset, so an octet that is no indicator breaks a stream; a serial line, which may start in the middle of a packet or
/// lose octets, searches for the next octet that can start an event or ACL packet instead.
public struct H4StreamDecoder {
    /// What to do with an octet that starts no packet.
    public enum Recovery: Sendable {
        case fail
        case search
    }

    /// Longer than any HCI packet that a controller sends.
    private static let capacity = 1 + 4 + 0xFFFF

    private let recovery: Recovery
    private var buffer: [UInt8]
    private var start = 0
    private var end = 0
    /// How many octets have been passed over in search of a packet.
    public private(set) var skippedOctets = 0

    public init(recovery: Recovery) {
        self.recovery = recovery
        buffer = [UInt8](repeating: 0, count: 4096)
    }

    /// Reads once with `read`, which fills an array from an offset on and returns how much it read.
    mutating func fill(_ read: (inout [UInt8], Int) -> Result<Int, Errno>) -> Result<Int, Errno> {
        makeRoom()
        let result = read(&buffer, end)
        if case .success(let count) = result { end += count }
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
    /// - Throws: the octet that is no packet indicator, where the decoder does not search.
    public mutating func forEachPacket(_ deliver: (RawSpan) -> Bool) throws(BrokenStream) {
        var position = start
        var skipped = 0
        defer {
            skippedOctets += skipped
            start = position == end ? 0 : position
            end = position == end ? 0 : end
        }
        while position < end {
            let rest = buffer.rawSpan.extracting(position..<end)
            guard let indicator = rest[checked: 0], isInbound(indicator) else {
                if recovery == .fail { throw BrokenStream(octet: rest[checked: 0] ?? 0) }
                position += 1
                skipped += 1
                continue
            }
            guard let length = try? PacketType.packetLength(atStartOf: rest), length <= rest.byteCount else { return }
            position += length
            if !deliver(rest.extracting(first: length)) { return }
        }
    }

    /// Thrown where a stream has lost its framing.
    public struct BrokenStream: Error, Hashable, Sendable {
        public let octet: UInt8
    }

    /// A controller sends no commands.
    private func isInbound(_ indicator: UInt8) -> Bool {
        guard let type = PacketType(rawValue: indicator) else { return false }
        return type != .command
    }

    /// Moves what is unread to the front, and grows where it fills the buffer.
    private mutating func makeRoom() {
        guard end == buffer.count else { return }
        if start > 0 {
            buffer.replaceSubrange(0..<(end - start), with: buffer[start..<end])
            end -= start
            start = 0
        }
        if end == buffer.count {
            buffer.append(contentsOf: repeatElement(0, count: min(buffer.count, H4StreamDecoder.capacity)))
        }
    }
}
