extension GeneratedTypeSample {
    /// Commands without parameters, answered by status, and with return parameters.
    static let commands: [GeneratedTypeSample] = [
        GeneratedTypeSample(
            testDescription: "without parameters",
            entry: """
                command 0C03 Reset (7.3.2, bit 5.7)
                  /// Puts the controller back as after power on.
                """,
            swift: """
                /// Puts the controller back as after power on (Vol 4, Part E, 7.3.2).
                public struct Reset: Command, Equatable {
                    public typealias ReturnParameters = StatusReturnParameters

                    public static let opcode = Opcode(group: 0x03, command: 0x0003)

                    public init() {}

                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        try ByteReader(parameters).requireEnd()
                    }

                    public func encode(into buffer: inout PacketBuffer) {}
                }
                """
        ),
        GeneratedTypeSample(
            testDescription: "that is answered by status",
            entry: """
                command 0406 Disconnect (7.1.6, answered by status)
                  /// Ends a connection.
                  Connection_Handle:handle!
                  Reason:ErrorCode! = .remoteUserTerminatedConnection /// The reason that the peer receives.
                """,
            swift: """
                /// Ends a connection (Vol 4, Part E, 7.1.6).
                public struct Disconnect: Command, Equatable {
                    public typealias ReturnParameters = NoReturnParameters

                    public static let opcode = Opcode(group: 0x01, command: 0x0006)

                    public var connectionHandle: ConnectionHandle
                    /// The reason that the peer receives.
                    public var reason: ErrorCode

                    public init(connectionHandle: ConnectionHandle, reason: ErrorCode = .remoteUserTerminatedConnection) {
                        self.connectionHandle = connectionHandle
                        self.reason = reason
                    }

                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        var reader = ByteReader(parameters)
                        connectionHandle = try reader.readConnectionHandle()
                        reason = ErrorCode(rawValue: try reader.readUInt8())
                        try reader.requireEnd()
                    }

                    public func encode(into buffer: inout PacketBuffer) {
                        buffer.append(connectionHandle.rawValue)
                        buffer.append(reason.rawValue)
                    }
                }
                """
        ),
        GeneratedTypeSample(
            testDescription: "with return parameters",
            entry: """
                command 1405 Read RSSI (7.5.4)
                  /// Reads the signal strength of a connection.
                  Connection_Handle:handle!
                  returns
                  RSSI:i8dBm! /// ; 127 when it cannot be read.
                """,
            swift: """
                /// Reads the signal strength of a connection (Vol 4, Part E, 7.5.4).
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
                        /// In dBm; 127 when it cannot be read.
                        public var rssi: Int8

                        public init(rssi: Int8) {
                            self.rssi = rssi
                        }

                        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
                            rssi = try reader.readInt8()
                        }

                        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
                            buffer.append(rssi)
                        }
                    }
                }
                """
        ),
    ]
}
