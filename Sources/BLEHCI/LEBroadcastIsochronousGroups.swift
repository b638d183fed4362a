import BLEByteCoding
import BluetoothTypes

/// A command to send a BIG with a periodic advertising train of this controller (Vol 4, Part E, 7.8.103).
public struct LECreateBIG: Command, Equatable {
    public typealias ReturnParameters = NoReturnParameters

    public static let opcode = HCIOpcode(group: 0x08, command: 0x0068)

    /// Identifies the group in this controller, 0x00 to 0xEF.
    public var bigHandle: UInt8
    /// The advertising set whose train announces the group, 0x00 to 0xEF.
    public var advertisingHandle: UInt8
    /// The number of streams, 1 to 31.
    public var numBIS: UInt8
    /// The time between two SDUs of a stream, in microseconds, 0x0000FF to 0x0FFFFF.
    public var sduInterval: UInt32
    /// The longest SDU, in bytes, 1 to 0x0FFF.
    public var maxSDU: UInt16
    /// The longest time for an SDU, in milliseconds, 0x0005 to 0x0FA0.
    public var maxTransportLatency: UInt16
    /// How often each PDU may be sent again, 0 to 30; a recommendation to the controller.
    public var rtn: UInt8
    /// The PHYs on which the controller may send.
    public var phy: PHYSet
    /// The order of the subevents of the streams; a recommendation to the controller.
    public var packing: ISOPacking
    /// Whether the PDUs are framed.
    public var framing: ISOFraming
    /// The code with which the streams are encrypted; nil for streams without encryption. Its first byte on the wire is
    /// the least significant.
    public var broadcastCode: UInt128?

    /// Creates a command.
    public init(
        bigHandle: UInt8,
        advertisingHandle: UInt8,
        numBIS: UInt8,
        sduInterval: UInt32,
        maxSDU: UInt16,
        maxTransportLatency: UInt16,
        rtn: UInt8 = 2,
        phy: PHYSet = .le2M,
        packing: ISOPacking = .sequential,
        framing: ISOFraming = .unframed,
        broadcastCode: UInt128? = nil
    ) {
        self.bigHandle = bigHandle
        self.advertisingHandle = advertisingHandle
        self.numBIS = numBIS
        self.sduInterval = sduInterval
        self.maxSDU = maxSDU
        self.maxTransportLatency = maxTransportLatency
        self.rtn = rtn
        self.phy = phy
        self.packing = packing
        self.framing = framing
        self.broadcastCode = broadcastCode
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        bigHandle = try reader.readUInt8()
        advertisingHandle = try reader.readUInt8()
        numBIS = try reader.readUInt8()
        sduInterval = try reader.readUInt24()
        maxSDU = try reader.readUInt16()
        maxTransportLatency = try reader.readUInt16()
        rtn = try reader.readUInt8()
        phy = PHYSet(rawValue: try reader.readUInt8())
        packing = ISOPacking(rawValue: try reader.readUInt8())
        framing = ISOFraming(rawValue: try reader.readUInt8())
        broadcastCode = try reader.readBroadcastCode()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(bigHandle)
        buffer.append(advertisingHandle)
        buffer.append(numBIS)
        buffer.appendUInt24(sduInterval)
        buffer.append(maxSDU)
        buffer.append(maxTransportLatency)
        buffer.append(rtn)
        buffer.append(phy.rawValue)
        buffer.append(packing.rawValue)
        buffer.append(framing.rawValue)
        buffer.append(broadcastCode: broadcastCode)
    }
}

/// A command to receive streams of a BIG that a periodic advertising train announces (Vol 4, Part E, 7.8.106).
public struct LEBIGCreateSync: Command, Equatable {
    public typealias ReturnParameters = NoReturnParameters

    public static let opcode = HCIOpcode(group: 0x08, command: 0x006B)

    /// The maximum number of streams in one command.
    public static let maximumCount = 31

    /// Identifies the group in this controller, 0x00 to 0xEF.
    public let bigHandle: UInt8
    /// The train that announces the group, 0x0000 to 0x0EFF.
    public let syncHandle: UInt16
    /// The code with which the streams are encrypted; nil for streams without encryption. Its first byte on the wire is
    /// the least significant.
    public let broadcastCode: UInt128?
    /// Maximum number of subevents to receive of each stream in each BIG event, 1 to 31; 0 if the controller decides.
    public let mse: UInt8
    /// The time without a received PDU after which the group is lost, in units of 10 ms, 0x000A to 0x4000.
    public let bigSyncTimeout: UInt16
    /// The numbers of the streams in the group, each 1 to 31, ascending.
    public let streams: [UInt8]

    /// Creates a command for at most ``maximumCount`` streams. Those beyond are dropped.
    public init(
        bigHandle: UInt8,
        syncHandle: UInt16,
        broadcastCode: UInt128? = nil,
        mse: UInt8 = 0,
        bigSyncTimeout: UInt16,
        streams: [UInt8]
    ) {
        self.bigHandle = bigHandle
        self.syncHandle = syncHandle
        self.broadcastCode = broadcastCode
        self.mse = mse
        self.bigSyncTimeout = bigSyncTimeout
        self.streams = Array(streams.prefix(Self.maximumCount))
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        bigHandle = try reader.readUInt8()
        syncHandle = try reader.readUInt16()
        broadcastCode = try reader.readBroadcastCode()
        mse = try reader.readUInt8()
        bigSyncTimeout = try reader.readUInt16()
        streams = [UInt8](copying: try reader.readBytes(count: Int(try reader.readUInt8())))
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(bigHandle)
        buffer.append(syncHandle)
        buffer.append(broadcastCode: broadcastCode)
        buffer.append(mse)
        buffer.append(bigSyncTimeout)
        buffer.append(UInt8(truncatingIfNeeded: streams.count))
        buffer.append(streams)
    }
}

extension ByteReader {
    /// Reads whether a group is encrypted, and its broadcast code, which is ignored if it is not.
    fileprivate mutating func readBroadcastCode() throws(PacketDecodingError) -> UInt128? {
        let isEncrypted = try readFlag("Encryption")
        let code = try readUInt128()
        return isEncrypted ? code : nil
    }
}

extension PacketBuffer {
    fileprivate mutating func append(broadcastCode: UInt128?) {
        append(flag: broadcastCode != nil)
        append(broadcastCode ?? 0)
    }
}
