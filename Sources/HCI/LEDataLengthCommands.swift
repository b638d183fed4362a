import BluetoothTypes
import ByteCoding

/// Suggests how long the packets sent on a connection may be (Vol 4, Part E, 7.8.33).
public struct LESetDataLength: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x0022)

    public var connectionHandle: ConnectionHandle
    /// 0x001B to 0x00FB.
    public var txOctets: UInt16
    /// In microseconds, 0x0148 to 0x4290.
    public var txTime: UInt16

    public init(connectionHandle: ConnectionHandle, txOctets: UInt16, txTime: UInt16) {
        self.connectionHandle = connectionHandle
        self.txOctets = txOctets
        self.txTime = txTime
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        txOctets = try reader.readUInt16()
        txTime = try reader.readUInt16()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
        buffer.append(txOctets)
        buffer.append(txTime)
    }

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var connectionHandle: ConnectionHandle

        public init(connectionHandle: ConnectionHandle) {
            self.connectionHandle = connectionHandle
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            connectionHandle = try reader.readConnectionHandle()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(connectionHandle.rawValue)
        }
    }
}

/// Reads the packet length suggested for new connections (Vol 4, Part E, 7.8.34).
public struct LEReadSuggestedDefaultDataLength: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x0023)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        /// 0x001B to 0x00FB.
        public var suggestedMaxTxOctets: UInt16
        /// In microseconds, 0x0148 to 0x4290.
        public var suggestedMaxTxTime: UInt16

        public init(suggestedMaxTxOctets: UInt16, suggestedMaxTxTime: UInt16) {
            self.suggestedMaxTxOctets = suggestedMaxTxOctets
            self.suggestedMaxTxTime = suggestedMaxTxTime
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            suggestedMaxTxOctets = try reader.readUInt16()
            suggestedMaxTxTime = try reader.readUInt16()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(suggestedMaxTxOctets)
            buffer.append(suggestedMaxTxTime)
        }
    }
}

/// Suggests the packet length for new connections (Vol 4, Part E, 7.8.35).
public struct LEWriteSuggestedDefaultDataLength: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0024)

    /// 0x001B to 0x00FB.
    public var suggestedMaxTxOctets: UInt16
    /// In microseconds, 0x0148 to 0x4290.
    public var suggestedMaxTxTime: UInt16

    public init(suggestedMaxTxOctets: UInt16, suggestedMaxTxTime: UInt16) {
        self.suggestedMaxTxOctets = suggestedMaxTxOctets
        self.suggestedMaxTxTime = suggestedMaxTxTime
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        suggestedMaxTxOctets = try reader.readUInt16()
        suggestedMaxTxTime = try reader.readUInt16()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(suggestedMaxTxOctets)
        buffer.append(suggestedMaxTxTime)
    }
}

/// Reads the longest packets that the controller can send and receive (Vol 4, Part E, 7.8.46).
public struct LEReadMaximumDataLength: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x002F)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        /// 0x001B to 0x00FB.
        public var supportedMaxTxOctets: UInt16
        /// In microseconds, 0x0148 to 0x4290.
        public var supportedMaxTxTime: UInt16
        /// 0x001B to 0x00FB.
        public var supportedMaxRxOctets: UInt16
        /// In microseconds, 0x0148 to 0x4290.
        public var supportedMaxRxTime: UInt16

        public init(
            supportedMaxTxOctets: UInt16,
            supportedMaxTxTime: UInt16,
            supportedMaxRxOctets: UInt16,
            supportedMaxRxTime: UInt16
        ) {
            self.supportedMaxTxOctets = supportedMaxTxOctets
            self.supportedMaxTxTime = supportedMaxTxTime
            self.supportedMaxRxOctets = supportedMaxRxOctets
            self.supportedMaxRxTime = supportedMaxRxTime
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            supportedMaxTxOctets = try reader.readUInt16()
            supportedMaxTxTime = try reader.readUInt16()
            supportedMaxRxOctets = try reader.readUInt16()
            supportedMaxRxTime = try reader.readUInt16()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(supportedMaxTxOctets)
            buffer.append(supportedMaxTxTime)
            buffer.append(supportedMaxRxOctets)
            buffer.append(supportedMaxRxTime)
        }
    }
}
