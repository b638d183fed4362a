import ByteCoding

/// The controller has failed (Vol 4, Part E, 7.7.16).
public struct HardwareError: EventParameters, Sendable, Equatable {
    public static let code: UInt8 = 0x10

    /// The maker's own.
    public var hardwareCode: UInt8

    public init(hardwareCode: UInt8) {
        self.hardwareCode = hardwareCode
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        hardwareCode = try reader.readUInt8()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(hardwareCode)
    }
}

/// The host has sent more data than the controller has buffers (Vol 4, Part E, 7.7.26).
public struct DataBufferOverflow: EventParameters, Sendable, Equatable {
    public static let code: UInt8 = 0x1A

    public var linkType: LinkType

    public init(linkType: LinkType) {
        self.linkType = linkType
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        linkType = LinkType(rawValue: try reader.readUInt8())
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(linkType.rawValue)
    }
}

/// Which kind of data overflowed the controller's buffers.
public struct LinkType: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let synchronous = LinkType(rawValue: 0x00)
    public static let acl = LinkType(rawValue: 0x01)
    public static let iso = LinkType(rawValue: 0x02)
}
