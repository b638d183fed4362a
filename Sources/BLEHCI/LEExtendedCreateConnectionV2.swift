import BLEByteCoding

/// A command to create a connection, version 2 (Vol 4, Part E, 7.8.66). The device is an advertiser, or a responder of
/// a periodic advertising train of this controller.
public struct LEExtendedCreateConnectionV2: Command, Equatable {
    public typealias ReturnParameters = NoReturnParameters

    public static let opcode = HCIOpcode(group: 0x08, command: 0x0085)

    /// The value of ``advertisingHandle`` and ``subevent`` for a connection to an advertiser.
    public static let none: UInt8 = 0xFF

    /// The advertising set of the train, 0x00 to 0xEF, or ``none``.
    public var advertisingHandle: UInt8
    /// The subevent in which the connection request is sent, 0x00 to 0x7F, or ``none``.
    public var subevent: UInt8
    /// The other parameters, which are those of version 1. For a connection to a responder, the filter accept list is
    /// not used, and only the connection parameters are.
    public var connection: LEExtendedCreateConnection

    /// Creates a command.
    public init(
        advertisingHandle: UInt8 = none,
        subevent: UInt8 = none,
        connection: LEExtendedCreateConnection
    ) {
        self.advertisingHandle = advertisingHandle
        self.subevent = subevent
        self.connection = connection
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        advertisingHandle = try reader.readUInt8()
        subevent = try reader.readUInt8()
        connection = try LEExtendedCreateConnection(decoding: reader.readRemaining())
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(advertisingHandle)
        buffer.append(subevent)
        connection.encode(into: &buffer)
    }
}
