import BluetoothTypes
import ByteCoding

/// Reads the PHYs of a connection (Vol 4, Part E, 7.8.47).
public struct LEReadPHY: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x0030)

    public var connectionHandle: ConnectionHandle

    public init(connectionHandle: ConnectionHandle) {
        self.connectionHandle = connectionHandle
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
    }

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var connectionHandle: ConnectionHandle
        public var txPHY: PHY
        public var rxPHY: PHY

        public init(connectionHandle: ConnectionHandle, txPHY: PHY, rxPHY: PHY) {
            self.connectionHandle = connectionHandle
            self.txPHY = txPHY
            self.rxPHY = rxPHY
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            connectionHandle = try reader.readConnectionHandle()
            txPHY = PHY(rawValue: try reader.readUInt8())
            rxPHY = PHY(rawValue: try reader.readUInt8())
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(connectionHandle.rawValue)
            buffer.append(txPHY.rawValue)
            buffer.append(rxPHY.rawValue)
        }
    }
}

/// Sets which PHYs are preferred on new connections (Vol 4, Part E, 7.8.48).
public struct LESetDefaultPHY: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0031)

    public var allPHYs: PHYPreference
    /// Ignored when `allPHYs` says that there is no preference.
    public var txPHYs: PHYSet
    /// Ignored when `allPHYs` says that there is no preference.
    public var rxPHYs: PHYSet

    public init(allPHYs: PHYPreference = [], txPHYs: PHYSet = [], rxPHYs: PHYSet = []) {
        self.allPHYs = allPHYs
        self.txPHYs = txPHYs
        self.rxPHYs = rxPHYs
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        allPHYs = PHYPreference(rawValue: try reader.readUInt8())
        txPHYs = PHYSet(rawValue: try reader.readUInt8())
        rxPHYs = PHYSet(rawValue: try reader.readUInt8())
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(allPHYs.rawValue)
        buffer.append(txPHYs.rawValue)
        buffer.append(rxPHYs.rawValue)
    }
}

/// Asks for other PHYs on a connection (Vol 4, Part E, 7.8.49).
public struct LESetPHY: Command, Equatable {
    public typealias ReturnParameters = NoReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0032)

    public var connectionHandle: ConnectionHandle
    public var allPHYs: PHYPreference
    /// Ignored when `allPHYs` says that there is no preference.
    public var txPHYs: PHYSet
    /// Ignored when `allPHYs` says that there is no preference.
    public var rxPHYs: PHYSet
    public var phyOptions: PHYOptions

    public init(
        connectionHandle: ConnectionHandle,
        allPHYs: PHYPreference = [],
        txPHYs: PHYSet = [],
        rxPHYs: PHYSet = [],
        phyOptions: PHYOptions = .noPreference
    ) {
        self.connectionHandle = connectionHandle
        self.allPHYs = allPHYs
        self.txPHYs = txPHYs
        self.rxPHYs = rxPHYs
        self.phyOptions = phyOptions
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        allPHYs = PHYPreference(rawValue: try reader.readUInt8())
        txPHYs = PHYSet(rawValue: try reader.readUInt8())
        rxPHYs = PHYSet(rawValue: try reader.readUInt8())
        phyOptions = PHYOptions(rawValue: try reader.readUInt16())
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
        buffer.append(allPHYs.rawValue)
        buffer.append(txPHYs.rawValue)
        buffer.append(rxPHYs.rawValue)
        buffer.append(phyOptions.rawValue)
    }
}
