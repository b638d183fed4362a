extension GeneratedTypeSample {
    /// Events and subevents.
    static let events: [GeneratedTypeSample] = [
        GeneratedTypeSample(
            testDescription: "of an event",
            entry: """
                event 0C Read Remote Version Information Complete (7.7.12)
                  /// The version of the peer's controller.
                  Status:HCIErrorCode! = .success
                  Company_Identifier:u16/@@company! /// The manufacturer.
                """,
            swift: """
                /// The version of the peer's controller (Vol 4, Part E, 7.7.12).
                public struct ReadRemoteVersionInformationComplete: EventParameters, Sendable, Equatable {
                    /// The event code of Read Remote Version Information Complete, 0x0C.
                    public static let code: UInt8 = 0x0C

                    /// `Status`: success, or the reason for the failure.
                    public var status: HCIErrorCode
                    /// `Company_Identifier`: the manufacturer.
                    public var companyIdentifier: UInt16

                    /// Creates the event from its parameters.
                    public init(status: HCIErrorCode = .success, companyIdentifier: UInt16) {
                        self.status = status
                        self.companyIdentifier = companyIdentifier
                    }

                    /// Decodes the parameters, which are 3 bytes long.
                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        var reader = ByteReader(parameters)
                        status = HCIErrorCode(rawValue: try reader.readUInt8())
                        companyIdentifier = try reader.readUInt16()
                        try reader.requireEnd()
                    }

                    /// Appends the parameters, which are 3 bytes long, without the event header.
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
                  Scanner_Address:PeerAddress! = .anonymous /// The address of the scanner.
                  Channel_Map:ChannelMap /// 1 for a channel in use.
                """,
            swift: """
                /// A scanner asked an advertising set for its scan response (Vol 4, Part E, 7.7.65.19).
                public struct LEScanRequestReceived: LEEventParameters, Sendable, Equatable {
                    /// The subevent code of LE Scan Request Received, 0x13.
                    public static let subeventCode: UInt8 = 0x13

                    /// `Scanner_Address_Type` and `Scanner_Address`: the address of the scanner.
                    public var scannerAddress: PeerAddress
                    /// `Channel_Map`: 1 for a channel in use.
                    public var channelMap: ChannelMap

                    /// Creates the event from its parameters.
                    public init(scannerAddress: PeerAddress = .anonymous, channelMap: ChannelMap) {
                        self.scannerAddress = scannerAddress
                        self.channelMap = channelMap
                    }

                    /// Decodes the parameters, which are 12 bytes long.
                    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
                        var reader = ByteReader(parameters)
                        scannerAddress = try PeerAddress(decoding: &reader)
                        channelMap = try ChannelMap(decoding: &reader)
                        try reader.requireEnd()
                    }

                    /// Appends the parameters, which are 12 bytes long, without the event header and the subevent code.
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
                    /// The subevent code of LE Scan Timeout, 0x11.
                    public static let subeventCode: UInt8 = 0x11

                    /// Creates the event, which has no parameters.
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
    ]
}
