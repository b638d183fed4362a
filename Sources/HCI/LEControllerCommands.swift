import BluetoothTypes
import ByteCoding

/// Chooses which LE Meta events the controller sends (Vol 4, Part E, 7.8.1).
public struct LESetEventMask: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0001)

    public var leEventMask: LEEventMask

    public init(leEventMask: LEEventMask = .default) {
        self.leEventMask = leEventMask
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        leEventMask = LEEventMask(rawValue: try reader.readUInt64())
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(leEventMask.rawValue)
    }
}

/// Reads the size of the controller's LE ACL buffers, version 1 (Vol 4, Part E, 7.8.2).
public struct LEReadBufferSize: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x0002)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        /// Octets in one ACL data packet, without its header; 0 when LE shares the BR/EDR buffers.
        public var leACLDataPacketLength: UInt16
        public var totalNumLEACLDataPackets: UInt8

        public init(leACLDataPacketLength: UInt16, totalNumLEACLDataPackets: UInt8) {
            self.leACLDataPacketLength = leACLDataPacketLength
            self.totalNumLEACLDataPackets = totalNumLEACLDataPackets
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            leACLDataPacketLength = try reader.readUInt16()
            totalNumLEACLDataPackets = try reader.readUInt8()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(leACLDataPacketLength)
            buffer.append(totalNumLEACLDataPackets)
        }
    }
}

/// Reads the size of the controller's LE ACL and ISO buffers, version 2 (Vol 4, Part E, 7.8.2).
public struct LEReadBufferSizeV2: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x0060)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        /// Octets in one ACL data packet, without its header; 0 when LE shares the BR/EDR buffers.
        public var leACLDataPacketLength: UInt16
        public var totalNumLEACLDataPackets: UInt8
        /// Octets in one ISO data packet, without its header; 0 when there are none.
        public var isoDataPacketLength: UInt16
        public var totalNumISODataPackets: UInt8

        public init(
            leACLDataPacketLength: UInt16,
            totalNumLEACLDataPackets: UInt8,
            isoDataPacketLength: UInt16 = 0,
            totalNumISODataPackets: UInt8 = 0
        ) {
            self.leACLDataPacketLength = leACLDataPacketLength
            self.totalNumLEACLDataPackets = totalNumLEACLDataPackets
            self.isoDataPacketLength = isoDataPacketLength
            self.totalNumISODataPackets = totalNumISODataPackets
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            leACLDataPacketLength = try reader.readUInt16()
            totalNumLEACLDataPackets = try reader.readUInt8()
            isoDataPacketLength = try reader.readUInt16()
            totalNumISODataPackets = try reader.readUInt8()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(leACLDataPacketLength)
            buffer.append(totalNumLEACLDataPackets)
            buffer.append(isoDataPacketLength)
            buffer.append(totalNumISODataPackets)
        }
    }
}

/// Reads the controller's LE features (Vol 4, Part E, 7.8.3).
public struct LEReadLocalSupportedFeatures: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x0003)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var leFeatures: LEFeatures

        public init(leFeatures: LEFeatures) {
            self.leFeatures = leFeatures
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            leFeatures = LEFeatures(rawValue: try reader.readUInt64())
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(leFeatures.rawValue)
        }
    }
}

/// Sets the random address for legacy advertising, scanning and initiating (Vol 4, Part E, 7.8.4).
public struct LESetRandomAddress: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0005)

    /// Sent without its type.
    public var randomAddress: DeviceAddress

    public init(randomAddress: DeviceAddress) {
        self.randomAddress = randomAddress
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        randomAddress = DeviceAddress(try reader.readUInt48(), isRandom: true)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.appendUInt48(randomAddress.value)
    }
}

/// Draws a random number (Vol 4, Part E, 7.8.23).
public struct LERand: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x0018)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var randomNumber: UInt64

        public init(randomNumber: UInt64) {
            self.randomNumber = randomNumber
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            randomNumber = try reader.readUInt64()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(randomNumber)
        }
    }
}

/// Reads which roles and states the controller can combine (Vol 4, Part E, 7.8.27).
public struct LEReadSupportedStates: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x001C)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        /// One bit for each combination in the table of 7.8.27.
        public var leStates: UInt64

        public init(leStates: UInt64) {
            self.leStates = leStates
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            leStates = try reader.readUInt64()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(leStates)
        }
    }
}

/// Reads the range of transmit power (Vol 4, Part E, 7.8.74).
public struct LEReadTransmitPower: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x004B)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        /// In dBm.
        public var minTxPower: Int8
        /// In dBm.
        public var maxTxPower: Int8

        public init(minTxPower: Int8, maxTxPower: Int8) {
            self.minTxPower = minTxPower
            self.maxTxPower = maxTxPower
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            minTxPower = try reader.readInt8()
            maxTxPower = try reader.readInt8()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(minTxPower)
            buffer.append(maxTxPower)
        }
    }
}
