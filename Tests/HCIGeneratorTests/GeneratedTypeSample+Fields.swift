extension GeneratedTypeSample {
    /// Fields of each type.
    static let fields: [GeneratedTypeSample] = [
        GeneratedTypeSample(
            testDescription: "with a flag",
            entry: """
                command 200A LE Set Advertising Enable (7.8.9)
                  /// Starts or stops legacy advertising.
                  Advertising_Enable:flag! = false /// Whether the controller advertises.
                """,
            swift: """
                /// Starts or stops legacy advertising (Vol 4, Part E, 7.8.9).
                public struct LESetAdvertisingEnable: Command, Equatable {
                    /// The status is the only return parameter.
                    public typealias ReturnParameters = StatusReturnParameters

                    /// The opcode of LE Set Advertising Enable, 0x200A.
                    public static let opcode = HCIOpcode(group: 0x08, command: 0x000A)

                    /// `Advertising_Enable`: whether the controller advertises.
                    public var advertisingEnable: Bool

                    /// Creates the command from its parameters.
                    public init(advertisingEnable: Bool = false) {
                        self.advertisingEnable = advertisingEnable
                    }

                    /// Decodes the parameters, which are 1 byte long.
                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        var reader = ByteReader(parameters)
                        advertisingEnable = try reader.readFlag("Advertising_Enable")
                        try reader.requireEnd()
                    }

                    /// Appends the parameters, which are 1 byte long, without the command header.
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
                  Peer_Identity_Address:typedAddress! /// The identity address of the peer.
                  Privacy_Mode:PrivacyMode! = .network
                """,
            swift: """
                /// Sets the privacy mode of a peer (Vol 4, Part E, 7.8.77).
                public struct LESetPrivacyMode: Command, Equatable {
                    /// The status is the only return parameter.
                    public typealias ReturnParameters = StatusReturnParameters

                    /// The opcode of LE Set Privacy Mode, 0x204E.
                    public static let opcode = HCIOpcode(group: 0x08, command: 0x004E)

                    /// `Peer_Identity_Address_Type` and `Peer_Identity_Address`: the identity address of the peer.
                    public var peerIdentityAddress: DeviceAddress
                    /// `Privacy_Mode`: whether the peer may use its identity address.
                    public var privacyMode: PrivacyMode

                    /// Creates the command from its parameters.
                    public init(peerIdentityAddress: DeviceAddress, privacyMode: PrivacyMode = .network) {
                        self.peerIdentityAddress = peerIdentityAddress
                        self.privacyMode = privacyMode
                    }

                    /// Decodes the parameters, which are 8 bytes long.
                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        var reader = ByteReader(parameters)
                        peerIdentityAddress = try reader.readDeviceAddress("Peer_Identity_Address")
                        privacyMode = try reader.readValue("Privacy_Mode")
                        try reader.requireEnd()
                    }

                    /// Appends the parameters, which are 8 bytes long, without the command header.
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
                  Peer_Resolvable_Address:randomAddress! /// Encoded without its type.
                  BD_ADDR:publicAddress /// All zero if the controller has none.
                """,
            swift: """
                /// Reads an address (Vol 4, Part E, 7.8.42).
                public struct LEReadPeerResolvableAddress: Command, Equatable {
                    /// The opcode of LE Read Peer Resolvable Address, 0x202B.
                    public static let opcode = HCIOpcode(group: 0x08, command: 0x002B)

                    /// Creates the command, which has no parameters.
                    public init() {}

                    /// Checks that there are no parameters.
                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        try ByteReader(parameters).requireEnd()
                    }

                    /// Appends nothing, because there are no parameters.
                    public func encode(into buffer: inout PacketBuffer) {}

                    /// The return parameters of LE Read Peer Resolvable Address that follow the status.
                    public struct ReturnParameters: BLEHCI.ReturnParameters, Equatable {
                        /// `Peer_Resolvable_Address`: encoded without its type.
                        public var peerResolvableAddress: DeviceAddress
                        /// `BD_ADDR`: all zero if the controller has none.
                        public var bdADDR: DeviceAddress

                        /// Creates the return parameters of a command that succeeded.
                        public init(peerResolvableAddress: DeviceAddress, bdADDR: DeviceAddress) {
                            self.peerResolvableAddress = peerResolvableAddress
                            self.bdADDR = bdADDR
                        }

                        /// Decodes the 12 bytes after the status, which was success.
                        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
                            peerResolvableAddress = DeviceAddress(try reader.readUInt48(), isRandom: true)
                            bdADDR = DeviceAddress(try reader.readUInt48(), isRandom: false)
                        }

                        /// Appends the 12 bytes after the status.
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
                  Link_Key:u128 = 0 /// The key.
                  LE_States:x64! /// LE states, one bit for each.
                  Path_Compensation:i16! /// In units of 0.1 dB.
                """,
            swift: """
                /// Sets limits (Vol 4, Part E, 7.8.99).
                public struct LESetLimitsV2: Command, Equatable {
                    /// The status is the only return parameter.
                    public typealias ReturnParameters = StatusReturnParameters

                    /// The opcode of LE Set Limits [v2], 0x20FF.
                    public static let opcode = HCIOpcode(group: 0x08, command: 0x00FF)

                    /// `Interval_Min`, in units of 0.625 ms, 0x000020 to 0xFFFFFF.
                    public var intervalMin: UInt32
                    /// `TX_Time`, in microseconds.
                    public var txTime: UInt16
                    /// `Period`, in units of 1.28 s.
                    public var period: UInt16
                    /// `Link_Key`: the key.
                    public var linkKey: UInt128
                    /// `LE_States`: LE states, one bit for each.
                    public var leStates: UInt64
                    /// `Path_Compensation`, in units of 0.1 dB.
                    public var pathCompensation: Int16

                    /// Creates the command from its parameters.
                    public init(
                        intervalMin: UInt32 = 0x000800,
                        txTime: UInt16,
                        period: UInt16,
                        linkKey: UInt128 = 0,
                        leStates: UInt64,
                        pathCompensation: Int16
                    ) {
                        self.intervalMin = intervalMin
                        self.txTime = txTime
                        self.period = period
                        self.linkKey = linkKey
                        self.leStates = leStates
                        self.pathCompensation = pathCompensation
                    }

                    /// Decodes the parameters, which are 33 bytes long.
                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        var reader = ByteReader(parameters)
                        intervalMin = try reader.readUInt24()
                        txTime = try reader.readUInt16()
                        period = try reader.readUInt16()
                        linkKey = try reader.readUInt128()
                        leStates = try reader.readUInt64()
                        pathCompensation = Int16(bitPattern: try reader.readUInt16())
                        try reader.requireEnd()
                    }

                    /// Appends the parameters, which are 33 bytes long, without the command header.
                    public func encode(into buffer: inout PacketBuffer) {
                        buffer.appendUInt24(intervalMin)
                        buffer.append(txTime)
                        buffer.append(period)
                        buffer.append(linkKey)
                        buffer.append(leStates)
                        buffer.append(UInt16(bitPattern: pathCompensation))
                    }
                }
                """
        ),
    ]
}
