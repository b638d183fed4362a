import BLEByteCoding

/// A command to start or stop advertising sets (Vol 4, Part E, 7.8.56).
public struct LESetExtendedAdvertisingEnable: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = HCIOpcode(group: 0x08, command: 0x0039)

    /// One advertising set, and the time at which it stops automatically.
    public struct AdvertisingSet: Sendable, Equatable {
        /// 0x00 to 0xEF.
        public var advertisingHandle: UInt8
        /// In units of 10 ms; 0 for no limit.
        public var duration: UInt16
        /// 0 for no limit.
        public var maxExtendedAdvertisingEvents: UInt8

        /// Creates the entry of a set. By default, its advertising has no limit.
        public init(advertisingHandle: UInt8, duration: UInt16 = 0, maxExtendedAdvertisingEvents: UInt8 = 0) {
            self.advertisingHandle = advertisingHandle
            self.duration = duration
            self.maxExtendedAdvertisingEvents = maxExtendedAdvertisingEvents
        }
    }

    /// The maximum number of sets in one command.
    public static let maximumCount = 63

    /// Whether the sets start; if false, they stop.
    public let enable: Bool
    /// The advertising sets. An empty list, with ``enable`` false, means all sets.
    public let sets: [AdvertisingSet]

    /// Creates a command for at most ``maximumCount`` sets. Those beyond are dropped.
    public init(enable: Bool, sets: [AdvertisingSet] = []) {
        self.enable = enable
        self.sets = Array(sets.prefix(Self.maximumCount))
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        enable = try reader.readFlag("Enable")
        var sets: [AdvertisingSet] = []
        for _ in 0..<(try reader.readUInt8()) {
            let handle = try reader.readUInt8()
            let duration = try reader.readUInt16()
            sets.append(
                AdvertisingSet(
                    advertisingHandle: handle,
                    duration: duration,
                    maxExtendedAdvertisingEvents: try reader.readUInt8()
                )
            )
        }
        try reader.requireEnd()
        self.sets = sets
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(flag: enable)
        buffer.append(UInt8(truncatingIfNeeded: sets.count))
        for set in sets {
            buffer.append(set.advertisingHandle)
            buffer.append(set.duration)
            buffer.append(set.maxExtendedAdvertisingEvents)
        }
    }
}
