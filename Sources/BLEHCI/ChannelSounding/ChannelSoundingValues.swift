import BLEByteCoding

/// The role of a device in Channel Sounding (Vol 6, Part H, 1).
public struct ChannelSoundingRole: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The device that sends first in each step.
    public static let initiator = ChannelSoundingRole(rawValue: 0x00)
    /// The device that answers.
    public static let reflector = ChannelSoundingRole(rawValue: 0x01)
}

/// A set of roles in Channel Sounding.
public struct ChannelSoundingRoles: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The device that sends first in each step.
    public static let initiator = ChannelSoundingRoles(rawValue: 1 << 0)
    /// The device that answers.
    public static let reflector = ChannelSoundingRoles(rawValue: 1 << 1)

    /// Whether the set has a role.
    public func contains(_ role: ChannelSoundingRole) -> Bool {
        role.rawValue < 2 && rawValue >> role.rawValue & 1 == 1
    }
}

/// What the devices measure in a step (Vol 6, Part H, 4.3).
public struct ChannelSoundingMode: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The frequency offset of the devices, for calibration.
    public static let mode0 = ChannelSoundingMode(rawValue: 0x00)
    /// The round-trip time (RTT) of packets.
    public static let mode1 = ChannelSoundingMode(rawValue: 0x01)
    /// The phases of tones, for phase-based ranging (PBR).
    public static let mode2 = ChannelSoundingMode(rawValue: 0x02)
    /// The round-trip time and the phases.
    public static let mode3 = ChannelSoundingMode(rawValue: 0x03)
    /// No submode.
    public static let none = ChannelSoundingMode(rawValue: 0xFF)
}

/// What the round-trip time is measured with.
public struct ChannelSoundingRTTType: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The access address alone.
    public static let accessAddress = ChannelSoundingRTTType(rawValue: 0x00)
    /// A sounding sequence of 32 bits.
    public static let sounding32 = ChannelSoundingRTTType(rawValue: 0x01)
    /// A sounding sequence of 96 bits.
    public static let sounding96 = ChannelSoundingRTTType(rawValue: 0x02)
    /// A random sequence of 32 bits.
    public static let random32 = ChannelSoundingRTTType(rawValue: 0x03)
    /// A random sequence of 64 bits.
    public static let random64 = ChannelSoundingRTTType(rawValue: 0x04)
    /// A random sequence of 96 bits.
    public static let random96 = ChannelSoundingRTTType(rawValue: 0x05)
    /// A random sequence of 128 bits.
    public static let random128 = ChannelSoundingRTTType(rawValue: 0x06)
}

/// The PHY of CS_SYNC packets.
public struct ChannelSoundingPHY: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// LE 1M, which all controllers with Channel Sounding support.
    public static let le1M = ChannelSoundingPHY(rawValue: 0x01)
    /// LE 2M.
    public static let le2M = ChannelSoundingPHY(rawValue: 0x02)
    /// LE 2M 2BT, with a bandwidth-time product of 2.
    public static let le2M2BT = ChannelSoundingPHY(rawValue: 0x03)
}

/// Whether more results of a procedure or a subevent follow.
public struct ChannelSoundingDoneStatus: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// All results are complete.
    public static let complete = ChannelSoundingDoneStatus(rawValue: 0x00)
    /// More results follow.
    public static let partial = ChannelSoundingDoneStatus(rawValue: 0x01)
    /// The procedure or the subevent was aborted. No more results follow.
    public static let aborted = ChannelSoundingDoneStatus(rawValue: 0x0F)
}

/// Channels of Channel Sounding, 0 to 78: one bit for each in 10 bytes (Vol 4, Part E, 7.8.137).
public struct ChannelSoundingChannels: Hashable, Sendable {
    /// The channels 0 to 63: bit n is channel n.
    public let low: UInt64
    /// The channels 64 to 78: bit n is channel 64 + n.
    public let high: UInt16

    /// Creates a set of channels. The highest bit of `high` is dropped.
    public init(low: UInt64, high: UInt16) {
        self.low = low
        self.high = high & 0x7FFF
    }

    /// All channels that may be used: not 0, 1, 23, 24, 25, 77 and 78 (Vol 6, Part H, 1).
    public static let all = ChannelSoundingChannels(low: 0xFFFF_FFFF_FC7F_FFFC, high: 0x1FFF)

    /// Whether a channel is set; false above 78.
    public func contains(_ channel: Int) -> Bool {
        switch channel {
        case 0..<64: low >> UInt64(channel) & 1 == 1
        case 64..<79: high >> UInt16(channel - 64) & 1 == 1
        default: false
        }
    }

    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        self.init(low: try reader.readUInt64(), high: try reader.readUInt16())
    }

    func encode(into buffer: inout PacketBuffer) {
        buffer.append(low)
        buffer.append(high)
    }
}

/// The frequency actuation errors (FAE) of a device when it is the reflector (Vol 6, Part H, 3.5).
///
/// There is an error for each of the 72 channels that may be used, in parts per million divided by 32.
public struct FrequencyActuationErrors: Hashable, Sendable {
    /// The number of channels with an error.
    public static let count = 72

    /// The errors from the lowest channel, signed.
    public let values: [Int8]

    /// - Parameter values: 72 errors. Missing ones are zero; further ones are dropped.
    public init(_ values: [Int8]) {
        var values = values.prefix(Self.count)
        values.append(contentsOf: repeatElement(0, count: Self.count - values.count))
        self.values = Array(values)
    }

    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        var values: [Int8] = []
        values.reserveCapacity(Self.count)
        for _ in 0..<Self.count { values.append(try reader.readInt8()) }
        self.values = values
    }

    func encode(into buffer: inout PacketBuffer) {
        for value in values { buffer.append(value) }
    }
}
