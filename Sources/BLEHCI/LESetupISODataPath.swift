import BLEByteCoding
import BluetoothTypes

/// A command to create a data path between a stream and the host, or a codec of the controller (Vol 4, Part E,
/// 7.8.109).
public struct LESetupISODataPath: Command, Equatable {
    public static let opcode = HCIOpcode(group: 0x08, command: 0x006E)

    /// The format of the data on the path (Vol 4, Part E, 7.8.109).
    public struct CodecID: Sendable, Equatable {
        /// A value of the Assigned Numbers; 0x03 for transparent data.
        public var codingFormat: UInt8
        /// Used only with a vendor's format, 0xFF.
        public var companyID: UInt16
        /// Used only with a vendor's format, 0xFF.
        public var vendorCodecID: UInt16

        /// Creates a format.
        public init(codingFormat: UInt8, companyID: UInt16 = 0, vendorCodecID: UInt16 = 0) {
            self.codingFormat = codingFormat
            self.companyID = companyID
            self.vendorCodecID = vendorCodecID
        }

        /// Data that the controller does not change.
        public static let transparent = CodecID(codingFormat: 0x03)
    }

    /// The handle of the stream.
    public struct ReturnParameters: BLEHCI.ReturnParameters, Equatable {
        /// The handle of the CIS or BIS.
        public var connectionHandle: ConnectionHandle

        /// Creates the return parameters of a command that succeeded.
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

    /// The ``dataPathID`` of the path over HCI.
    public static let hci: UInt8 = 0x00

    /// The handle of the CIS or BIS.
    public var connectionHandle: ConnectionHandle
    /// The direction of the path.
    public var dataPathDirection: ISODataPathDirection
    /// ``hci`` for the path over HCI, other values for paths of the vendor.
    public var dataPathID: UInt8
    /// The format of the data.
    public var codecID: CodecID
    /// The time that the codec takes, in microseconds, 0x000000 to 0x3D0900.
    public var controllerDelay: UInt32
    /// The settings of the codec, at most 242 bytes.
    public var codecConfiguration: [UInt8]

    /// Creates a command. By default, the path is over HCI and its data is transparent.
    public init(
        connectionHandle: ConnectionHandle,
        dataPathDirection: ISODataPathDirection,
        dataPathID: UInt8 = hci,
        codecID: CodecID = .transparent,
        controllerDelay: UInt32 = 0,
        codecConfiguration: [UInt8] = []
    ) {
        self.connectionHandle = connectionHandle
        self.dataPathDirection = dataPathDirection
        self.dataPathID = dataPathID
        self.codecID = codecID
        self.controllerDelay = controllerDelay
        self.codecConfiguration = codecConfiguration
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        dataPathDirection = try reader.readValue("Data_Path_Direction")
        dataPathID = try reader.readUInt8()
        let codingFormat = try reader.readUInt8()
        let companyID = try reader.readUInt16()
        codecID = CodecID(
            codingFormat: codingFormat,
            companyID: companyID,
            vendorCodecID: try reader.readUInt16()
        )
        controllerDelay = try reader.readUInt24()
        codecConfiguration = [UInt8](copying: try reader.readBytes(count: Int(try reader.readUInt8())))
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
        buffer.append(dataPathDirection.rawValue)
        buffer.append(dataPathID)
        buffer.append(codecID.codingFormat)
        buffer.append(codecID.companyID)
        buffer.append(codecID.vendorCodecID)
        buffer.appendUInt24(controllerDelay)
        let configuration = codecConfiguration.prefix(242)
        buffer.append(UInt8(truncatingIfNeeded: configuration.count))
        buffer.append(Array(configuration))
    }
}
