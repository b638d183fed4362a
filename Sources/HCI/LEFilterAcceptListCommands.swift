import ByteCoding

/// Reads how many devices the filter accept list holds (Vol 4, Part E, 7.8.14).
public struct LEReadFilterAcceptListSize: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x000F)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var filterAcceptListSize: UInt8

        public init(filterAcceptListSize: UInt8) {
            self.filterAcceptListSize = filterAcceptListSize
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            filterAcceptListSize = try reader.readUInt8()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(filterAcceptListSize)
        }
    }
}

/// Empties the filter accept list (Vol 4, Part E, 7.8.15).
public struct LEClearFilterAcceptList: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0010)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}
}

/// Adds a device to the filter accept list (Vol 4, Part E, 7.8.16).
public struct LEAddDeviceToFilterAcceptList: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0011)

    /// ``PeerAddress/anonymous`` stands for all anonymous advertisers.
    public var address: PeerAddress

    public init(address: PeerAddress) {
        self.address = address
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        address = try PeerAddress(decoding: &reader)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        address.encode(into: &buffer)
    }
}

/// Takes a device off the filter accept list (Vol 4, Part E, 7.8.17).
public struct LERemoveDeviceFromFilterAcceptList: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0012)

    /// ``PeerAddress/anonymous`` stands for all anonymous advertisers.
    public var address: PeerAddress

    public init(address: PeerAddress) {
        self.address = address
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        address = try PeerAddress(decoding: &reader)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        address.encode(into: &buffer)
    }
}
