extension GeneratedTypeSample {
    /// Events and subevents.
    static let events: [GeneratedTypeSample] = [
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
