import Testing

/// An entry of a table and its Swift type.
struct GeneratedTypeSample: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let entry: String
    let swift: String

    static let all: [GeneratedTypeSample] = [
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
        GeneratedTypeSample(
            testDescription: "with a flag",
            entry: """
                command 200A LE Set Advertising Enable (7.8.9)
                  /// Starts or stops legacy advertising.
                  Advertising_Enable:flag! = false
                """,
            swift: """
                /// Starts or stops legacy advertising (Vol 4, Part E, 7.8.9).
                public struct LESetAdvertisingEnable: Command, Equatable {
                    public typealias ReturnParameters = StatusReturnParameters

                    public static let opcode = Opcode(group: 0x08, command: 0x000A)

                    public var advertisingEnable: Bool

                    public init(advertisingEnable: Bool = false) {
                        self.advertisingEnable = advertisingEnable
                    }

                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        var reader = ByteReader(parameters)
                        advertisingEnable = try reader.readFlag("Advertising_Enable")
                        try reader.requireEnd()
                    }

                    public func encode(into buffer: inout PacketBuffer) {
                        buffer.append(flag: advertisingEnable)
                    }
                }
                """
        ),
        GeneratedTypeSample(
            testDescription: "with a closed value and an address with its type",
            entry: """
                command 204E LE Set Privacy Mode (7.8.77)
                  /// Sets the privacy mode of a peer.
                  Peer_Identity_Address:typedAddress!
                  Privacy_Mode:PrivacyMode! = .network
                """,
            swift: """
                /// Sets the privacy mode of a peer (Vol 4, Part E, 7.8.77).
                public struct LESetPrivacyMode: Command, Equatable {
                    public typealias ReturnParameters = StatusReturnParameters

                    public static let opcode = Opcode(group: 0x08, command: 0x004E)

                    public var peerIdentityAddress: DeviceAddress
                    public var privacyMode: PrivacyMode

                    public init(peerIdentityAddress: DeviceAddress, privacyMode: PrivacyMode = .network) {
                        self.peerIdentityAddress = peerIdentityAddress
                        self.privacyMode = privacyMode
                    }

                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        var reader = ByteReader(parameters)
                        peerIdentityAddress = try reader.readDeviceAddress("Peer_Identity_Address")
                        privacyMode = try reader.readValue("Privacy_Mode")
                        try reader.requireEnd()
                    }

                    public func encode(into buffer: inout PacketBuffer) {
                        buffer.append(peerIdentityAddress)
                        buffer.append(privacyMode.rawValue)
                    }
                }
                """
        ),
        GeneratedTypeSample(
            testDescription: "with addresses without their types",
            entry: """
                command 202B LE Read Peer Resolvable Address (7.8.42)
                  /// Reads an address.
                  returns
                  Peer_Resolvable_Address:randomAddress!
                  BD_ADDR:publicAddress
                """,
            swift: """
                /// Reads an address (Vol 4, Part E, 7.8.42).
                public struct LEReadPeerResolvableAddress: Command, Equatable {
                    public static let opcode = Opcode(group: 0x08, command: 0x002B)

                    public init() {}

                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        try ByteReader(parameters).requireEnd()
                    }

                    public func encode(into buffer: inout PacketBuffer) {}

                    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
                        public var peerResolvableAddress: DeviceAddress
                        public var bdADDR: DeviceAddress

                        public init(peerResolvableAddress: DeviceAddress, bdADDR: DeviceAddress) {
                            self.peerResolvableAddress = peerResolvableAddress
                            self.bdADDR = bdADDR
                        }

                        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
                            peerResolvableAddress = DeviceAddress(try reader.readUInt48(), isRandom: true)
                            bdADDR = DeviceAddress(try reader.readUInt48(), isRandom: false)
                        }

                        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
                            buffer.appendUInt48(peerResolvableAddress.value)
                            buffer.appendUInt48(bdADDR.value)
                        }
                    }
                }
                """
        ),
        GeneratedTypeSample(
            testDescription: "with integers, units and another name",
            entry: """
                command 20FF LE Set Limits [v2] (7.8.99)
                  /// Sets limits.
                  Interval_Min:u24*625us! = 0x000800 /// 0x000020 to 0xFFFFFF.
                  TX_Time(txTime):u16*1us
                  Period:u16*1280ms
                  Link_Key:u128 = 0
                  LE_States:x64!
                """,
            swift: """
                /// Sets limits (Vol 4, Part E, 7.8.99).
                public struct LESetLimitsV2: Command, Equatable {
                    public typealias ReturnParameters = StatusReturnParameters

                    public static let opcode = Opcode(group: 0x08, command: 0x00FF)

                    /// In units of 0.625 ms, 0x000020 to 0xFFFFFF.
                    public var intervalMin: UInt32
                    /// In microseconds.
                    public var txTime: UInt16
                    /// In units of 1.28 s.
                    public var period: UInt16
                    public var linkKey: UInt128
                    public var leStates: UInt64

                    public init(
                        intervalMin: UInt32 = 0x000800,
                        txTime: UInt16,
                        period: UInt16,
                        linkKey: UInt128 = 0,
                        leStates: UInt64
                    ) {
                        self.intervalMin = intervalMin
                        self.txTime = txTime
                        self.period = period
                        self.linkKey = linkKey
                        self.leStates = leStates
                    }

                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        var reader = ByteReader(parameters)
                        intervalMin = try reader.readUInt24()
                        txTime = try reader.readUInt16()
                        period = try reader.readUInt16()
                        linkKey = try reader.readUInt128()
                        leStates = try reader.readUInt64()
                        try reader.requireEnd()
                    }

                    public func encode(into buffer: inout PacketBuffer) {
                        buffer.appendUInt24(intervalMin)
                        buffer.append(txTime)
                        buffer.append(period)
                        buffer.append(linkKey)
                        buffer.append(leStates)
                    }
                }
                """
        ),
        GeneratedTypeSample(
            testDescription: "of an event",
            entry: """
                event 0C Read Remote Version Information Complete (7.7.12)
                  /// The version of the peer's controller.
                  Status:ErrorCode! = .success
                  Company_Identifier:u16/@@company!
                """,
            swift: """
                /// The version of the peer's controller (Vol 4, Part E, 7.7.12).
                public struct ReadRemoteVersionInformationComplete: EventParameters, Sendable, Equatable {
                    public static let code: UInt8 = 0x0C

                    public var status: ErrorCode
                    public var companyIdentifier: UInt16

                    public init(status: ErrorCode = .success, companyIdentifier: UInt16) {
                        self.status = status
                        self.companyIdentifier = companyIdentifier
                    }

                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        var reader = ByteReader(parameters)
                        status = ErrorCode(rawValue: try reader.readUInt8())
                        companyIdentifier = try reader.readUInt16()
                        try reader.requireEnd()
                    }

                    public func encode(into buffer: inout PacketBuffer) {
                        buffer.append(status.rawValue)
                        buffer.append(companyIdentifier)
                    }
                }
                """
        ),
        GeneratedTypeSample(
            testDescription: "of a subevent",
            entry: """
                subevent 13 LE Scan Request Received (7.7.65.19)
                  /// A scanner asked an advertising set for its scan response.
                  Scanner_Address:PeerAddress! = .anonymous
                  Channel_Map:ChannelMap
                """,
            swift: """
                /// A scanner asked an advertising set for its scan response (Vol 4, Part E, 7.7.65.19).
                public struct LEScanRequestReceived: LEEventParameters, Sendable, Equatable {
                    public static let subeventCode: UInt8 = 0x13

                    public var scannerAddress: PeerAddress
                    public var channelMap: ChannelMap

                    public init(scannerAddress: PeerAddress = .anonymous, channelMap: ChannelMap) {
                        self.scannerAddress = scannerAddress
                        self.channelMap = channelMap
                    }

                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        var reader = ByteReader(parameters)
                        scannerAddress = try PeerAddress(decoding: &reader)
                        channelMap = try ChannelMap(decoding: &reader)
                        try reader.requireEnd()
                    }

                    public func encode(into buffer: inout PacketBuffer) {
                        scannerAddress.encode(into: &buffer)
                        channelMap.encode(into: &buffer)
                    }
                }
                """
        ),
        GeneratedTypeSample(
            testDescription: "with a long sentence",
            entry: """
                subevent 11 LE Scan Timeout (7.7.65.17)
                  /// Scanning ended because its duration is over, and this sentence is so long that it needs two lines.
                """,
            swift: """
                /// Scanning ended because its duration is over, and this sentence is so long that it needs two lines (Vol 4, Part E,
                /// 7.7.65.17).
                public struct LEScanTimeout: LEEventParameters, Sendable, Equatable {
                    public static let subeventCode: UInt8 = 0x11

                    public init() {}

                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        try ByteReader(parameters).requireEnd()
                    }

                    public func encode(into buffer: inout PacketBuffer) {}
                }
                """
        ),
    ]
}
