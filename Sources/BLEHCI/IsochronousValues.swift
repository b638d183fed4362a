/// The order of the subevents of the streams of a CIG or BIG.
public struct ISOPacking: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// All subevents of a stream, then all of the next stream.
    public static let sequential = ISOPacking(rawValue: 0x00)
    /// The first subevents of all streams, then the second ones.
    public static let interleaved = ISOPacking(rawValue: 0x01)
}

/// How the SDUs of a stream are put into PDUs (Vol 6, Part G, 2).
public struct ISOFraming: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Unframed: each SDU begins with a PDU. The ISO interval is then a multiple of the SDU interval.
    public static let unframed = ISOFraming(rawValue: 0x00)
    /// Framed: a PDU may have segments of several SDUs, each with its time offset.
    public static let framed = ISOFraming(rawValue: 0x01)
    /// Framed, with a whole SDU in each segment.
    public static let framedUnsegmented = ISOFraming(rawValue: 0x02)
}

/// The direction of one ISO data path of a stream, as the controller sees it (Vol 4, Part E, 7.8.109).
public enum ISODataPathDirection: UInt8, Sendable {
    /// From the host to the controller: data that is sent.
    case input = 0x00
    /// From the controller to the host: received data.
    case output = 0x01
}

/// The directions of the ISO data paths of a stream (Vol 4, Part E, 7.8.110).
public struct ISODataPathDirections: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The path from the host to the controller.
    public static let input = ISODataPathDirections(rawValue: 1 << 0)
    /// The path from the controller to the host.
    public static let output = ISODataPathDirections(rawValue: 1 << 1)
}
