import BLEByteCoding

/// The role of the controller in a connection (Vol 4, Part E, 7.7.65.1).
public struct Role: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The device that created the connection and determines its timing.
    public static let central = Role(rawValue: 0x00)
    /// The device that advertised and follows the central's timing.
    public static let peripheral = Role(rawValue: 0x01)
}

/// The data channels, 0 to 36, that are used or may be used: one bit for each in 5 bytes (Vol 4, Part E, 7.8.19).
public struct ChannelMap: RawRepresentable, Hashable, Sendable {
    /// Bit n is channel n.
    public let rawValue: UInt64

    /// - Parameter rawValue: 37 bits; higher bits are dropped.
    public init(rawValue: UInt64) { self.rawValue = rawValue & 0x1F_FFFF_FFFF }

    /// All 37 data channels.
    public static let all = ChannelMap(rawValue: 0x1F_FFFF_FFFF)

    /// Whether the channel's bit is set; false above 36.
    public func contains(_ channel: Int) -> Bool {
        (0...36).contains(channel) && rawValue >> UInt64(channel) & 1 == 1
    }

    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        let low = try reader.readUInt32()
        let high = try reader.readUInt8()
        self.init(rawValue: UInt64(low) | UInt64(high) << 32)
    }

    func encode(into buffer: inout PacketBuffer) {
        buffer.append(UInt32(truncatingIfNeeded: rawValue))
        buffer.append(UInt8(truncatingIfNeeded: rawValue >> 32))
    }
}

/// Whether a link is encrypted, and by which cipher.
public struct EncryptionState: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The link is not encrypted.
    public static let off = EncryptionState(rawValue: 0x00)
    /// AES-CCM on LE, E0 on BR/EDR.
    public static let on = EncryptionState(rawValue: 0x01)
    /// AES-CCM on BR/EDR.
    public static let onWithAESCCM = EncryptionState(rawValue: 0x02)
}

/// The kinds of spaces between packets that have a frame space of their own (Vol 6, Part B, 4.1).
public struct FrameSpacingTypes: OptionSet, Hashable, Sendable {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// T_IFS_ACL_CP: from a packet of the central to the peripheral's next packet.
    public static let tIFSACLCP = FrameSpacingTypes(rawValue: 1 << 0)
    /// T_IFS_ACL_PC: from a packet of the peripheral to the central's next packet.
    public static let tIFSACLPC = FrameSpacingTypes(rawValue: 1 << 1)
    /// T_MCES: between two connection events.
    public static let tMCES = FrameSpacingTypes(rawValue: 1 << 2)
    /// T_IFS_CIS: between two packets of a connected isochronous stream.
    public static let tIFSCIS = FrameSpacingTypes(rawValue: 1 << 3)
    /// T_MSS_CIS: between two subevents of connected isochronous streams.
    public static let tMSSCIS = FrameSpacingTypes(rawValue: 1 << 4)
}
