import BluetoothTypes
import ByteCoding

/// Reads the controller's version and maker (Vol 4, Part E, 7.4.1).
public struct ReadLocalVersionInformation: Command, Equatable {
    public static let opcode = Opcode(group: 0x04, command: 0x0001)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var hciVersion: CoreVersion
        /// The maker's own.
        public var hciSubversion: UInt16
        public var lmpVersion: CoreVersion
        /// The maker, by the company identifiers of Assigned Numbers.
        public var companyIdentifier: UInt16
        /// The maker's own.
        public var lmpSubversion: UInt16

        public init(
            hciVersion: CoreVersion,
            hciSubversion: UInt16,
            lmpVersion: CoreVersion,
            companyIdentifier: UInt16,
            lmpSubversion: UInt16
        ) {
            self.hciVersion = hciVersion
            self.hciSubversion = hciSubversion
            self.lmpVersion = lmpVersion
            self.companyIdentifier = companyIdentifier
            self.lmpSubversion = lmpSubversion
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            hciVersion = CoreVersion(rawValue: try reader.readUInt8())
            hciSubversion = try reader.readUInt16()
            lmpVersion = CoreVersion(rawValue: try reader.readUInt8())
            companyIdentifier = try reader.readUInt16()
            lmpSubversion = try reader.readUInt16()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(hciVersion.rawValue)
            buffer.append(hciSubversion)
            buffer.append(lmpVersion.rawValue)
            buffer.append(companyIdentifier)
            buffer.append(lmpSubversion)
        }
    }
}

/// Reads which commands the controller knows (Vol 4, Part E, 7.4.2).
public struct ReadLocalSupportedCommands: Command, Equatable {
    public static let opcode = Opcode(group: 0x04, command: 0x0002)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var supportedCommands: SupportedCommands

        public init(supportedCommands: SupportedCommands) {
            self.supportedCommands = supportedCommands
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            supportedCommands = try SupportedCommands(decoding: &reader)
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            supportedCommands.encode(into: &buffer)
        }
    }
}

/// Reads the controller's LMP features, those of page 0 (Vol 4, Part E, 7.4.3).
public struct ReadLocalSupportedFeatures: Command, Equatable {
    public static let opcode = Opcode(group: 0x04, command: 0x0003)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var lmpFeatures: LMPFeatures

        public init(lmpFeatures: LMPFeatures) {
            self.lmpFeatures = lmpFeatures
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            lmpFeatures = LMPFeatures(rawValue: try reader.readUInt64())
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(lmpFeatures.rawValue)
        }
    }
}

/// Reads the size of the buffers that BR/EDR has, and LE too where it has none of its own (Vol 4, Part E, 7.4.5).
public struct ReadBufferSize: Command, Equatable {
    public static let opcode = Opcode(group: 0x04, command: 0x0005)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        /// Octets in one ACL data packet, without its header.
        public var aclDataPacketLength: UInt16
        /// Octets in one synchronous data packet, without its header.
        public var synchronousDataPacketLength: UInt8
        public var totalNumACLDataPackets: UInt16
        public var totalNumSynchronousDataPackets: UInt16

        public init(
            aclDataPacketLength: UInt16,
            synchronousDataPacketLength: UInt8,
            totalNumACLDataPackets: UInt16,
            totalNumSynchronousDataPackets: UInt16
        ) {
            self.aclDataPacketLength = aclDataPacketLength
            self.synchronousDataPacketLength = synchronousDataPacketLength
            self.totalNumACLDataPackets = totalNumACLDataPackets
            self.totalNumSynchronousDataPackets = totalNumSynchronousDataPackets
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            aclDataPacketLength = try reader.readUInt16()
            synchronousDataPacketLength = try reader.readUInt8()
            totalNumACLDataPackets = try reader.readUInt16()
            totalNumSynchronousDataPackets = try reader.readUInt16()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(aclDataPacketLength)
            buffer.append(synchronousDataPacketLength)
            buffer.append(totalNumACLDataPackets)
            buffer.append(totalNumSynchronousDataPackets)
        }
    }
}

/// Reads the controller's public address (Vol 4, Part E, 7.4.6).
public struct ReadBDADDR: Command, Equatable {
    public static let opcode = Opcode(group: 0x04, command: 0x0009)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        /// All zero when the controller has none.
        public var bdADDR: DeviceAddress

        public init(bdADDR: DeviceAddress) {
            self.bdADDR = bdADDR
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            bdADDR = DeviceAddress(try reader.readUInt48(), isRandom: false)
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.appendUInt48(bdADDR.value)
        }
    }
}
