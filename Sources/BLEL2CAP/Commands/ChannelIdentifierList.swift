import BLEByteCoding

/// The channels that one command of the enhanced variant names, at most five (Vol 3, Part A, 4.25 to 4.27).
///
/// The list is stored in place. It costs no allocation, and a peer cannot make it longer.
public struct ChannelIdentifierList: Sendable {
    /// Maximum number of channels that one command names.
    public static let capacity = 5

    private var identifiers = InlineArray<5, ChannelIdentifier>(repeating: .null)
    public private(set) var count = 0

    /// Creates an empty list.
    public init() {}

    /// A list of these channels; nil if there are more than ``capacity``.
    public init?(_ channels: some Sequence<ChannelIdentifier>) {
        for channel in channels {
            guard append(channel) else { return nil }
        }
    }

    /// Decodes the rest of a command, which consists of channel identifiers.
    init(decodingRestOf reader: inout ByteReader) throws(PacketDecodingError) {
        let length = reader.remaining
        guard length % 2 == 0, length <= 2 * ChannelIdentifierList.capacity else {
            throw .invalidLength(length, field: "list of channel identifiers")
        }
        while !reader.isAtEnd { append(ChannelIdentifier(rawValue: try reader.readUInt16())) }
    }

    func encode(into buffer: inout PacketBuffer) {
        for channel in self { buffer.append(channel.rawValue) }
    }

    /// Whether a channel occurs more than once.
    public var hasDuplicates: Bool {
        indices.contains { self[..<$0].contains(self[$0]) }
    }

    /// Appends a channel if the list is not full.
    ///
    /// - Returns: false if the list was full.
    @discardableResult
    public mutating func append(_ channel: ChannelIdentifier) -> Bool {
        guard count < ChannelIdentifierList.capacity else { return false }
        identifiers[count] = channel
        count += 1
        return true
    }
}

extension ChannelIdentifierList: RandomAccessCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { count }

    /// - Precondition: `position` is less than ``count``.
    public subscript(position: Int) -> ChannelIdentifier {
        precondition(position < count)
        return identifiers[position]
    }
}

extension ChannelIdentifierList: Equatable {
    public static func == (left: Self, right: Self) -> Bool { left.elementsEqual(right) }
}
