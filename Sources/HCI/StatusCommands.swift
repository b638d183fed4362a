import BluetoothTypes
import ByteCoding

/// Reads how strongly a connection's packets arrive (Vol 4, Part E, 7.5.4).
public struct ReadRSSI: Command, Equatable {
    public static let opcode = Opcode(group: 0x05, command: 0x0005)

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
        /// In dBm; 127 when it cannot be read.
        public var rssi: Int8

        public init(connectionHandle: ConnectionHandle, rssi: Int8) {
            self.connectionHandle = connectionHandle
            self.rssi = rssi
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            connectionHandle = try reader.readConnectionHandle()
            rssi = try reader.readInt8()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(connectionHandle.rawValue)
            buffer.append(rssi)
        }
    }
}
