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
                    /// The status is the only return parameter.
                    public typealias ReturnParameters = StatusReturnParameters

                    /// The opcode of Reset, 0x0C03, at byte 5, bit 7 of ``SupportedCommands``.
                    public static let opcode = HCIOpcode(group: 0x03, command: 0x0003)

                    /// Creates the command, which has no parameters.
                    public init() {}

                    /// Checks that there are no parameters.
                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        try ByteReader(parameters).requireEnd()
                    }

                    /// Appends nothing, because there are no parameters.
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
                  Reason:HCIErrorCode! = .remoteUserTerminatedConnection /// The reason that the peer receives.
                """,
            swift: """
                /// Ends a connection (Vol 4, Part E, 7.1.6).
                public struct Disconnect: Command, Equatable {
                    /// No return parameters, because Command Status answers the command.
                    public typealias ReturnParameters = NoReturnParameters

                    /// The opcode of Disconnect, 0x0406.
                    public static let opcode = HCIOpcode(group: 0x01, command: 0x0006)

                    /// `Connection_Handle`: the connection, 0x0000 to 0x0EFF.
                    public var connectionHandle: ConnectionHandle
                    /// `Reason`: the reason that the peer receives.
                    public var reason: HCIErrorCode

                    /// Creates the command from its parameters.
                    public init(connectionHandle: ConnectionHandle, reason: HCIErrorCode = .remoteUserTerminatedConnection) {
                        self.connectionHandle = connectionHandle
                        self.reason = reason
                    }

                    /// Decodes the parameters, which are 3 bytes long.
                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        var reader = ByteReader(parameters)
                        connectionHandle = try reader.readConnectionHandle()
                        reason = HCIErrorCode(rawValue: try reader.readUInt8())
                        try reader.requireEnd()
                    }

                    /// Appends the parameters, which are 3 bytes long, without the command header.
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
                    /// The opcode of Read RSSI, 0x1405.
                    public static let opcode = HCIOpcode(group: 0x05, command: 0x0005)

                    /// `Connection_Handle`: the connection, 0x0000 to 0x0EFF.
                    public var connectionHandle: ConnectionHandle

                    /// Creates the command from its parameters.
                    public init(connectionHandle: ConnectionHandle) {
                        self.connectionHandle = connectionHandle
                    }

                    /// Decodes the parameters, which are 2 bytes long.
                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        var reader = ByteReader(parameters)
                        connectionHandle = try reader.readConnectionHandle()
                        try reader.requireEnd()
                    }

                    /// Appends the parameters, which are 2 bytes long, without the command header.
                    public func encode(into buffer: inout PacketBuffer) {
                        buffer.append(connectionHandle.rawValue)
                    }

                    /// The return parameters of Read RSSI that follow the status.
                    public struct ReturnParameters: BLEHCI.ReturnParameters, Equatable {
                        /// `RSSI`, in dBm; 127 when it cannot be read.
                        public var rssi: Int8

                        /// Creates the return parameters of a command that succeeded.
                        public init(rssi: Int8) {
                            self.rssi = rssi
                        }

                        /// Decodes the 1 byte after the status, which was success.
                        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
                            rssi = try reader.readInt8()
                        }

                        /// Appends the 1 byte after the status.
                        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
                            buffer.append(rssi)
                        }
                    }
                }
                """
        ),
    ]
}
