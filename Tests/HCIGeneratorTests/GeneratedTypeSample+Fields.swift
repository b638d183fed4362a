extension GeneratedTypeSample {
    /// Fields of each type.
    static let fields: [GeneratedTypeSample] = [
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
    ]
}
