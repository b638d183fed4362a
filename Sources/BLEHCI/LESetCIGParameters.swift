import BLEByteCoding
import BluetoothTypes

/// A command to create a CIG, or to change one of which no stream is established (Vol 4, Part E, 7.8.97).
///
/// `C_To_P` parameters are for data from the central to the peripheral, `P_To_C` ones for the other direction.
public struct LESetCIGParameters: Command, Equatable {
    public static let opcode = HCIOpcode(group: 0x08, command: 0x0062)

    /// The parameters of one stream of the group.
    public struct CIS: Sendable, Equatable {
        /// Identifies the stream in its group, 0x00 to 0xEF.
        public var cisID: UInt8
        /// The longest SDU from the central in bytes, 0 to 0x0FFF; 0 if it sends none.
        public var maxSDUCToP: UInt16
        /// The longest SDU from the peripheral in bytes, 0 to 0x0FFF; 0 if it sends none.
        public var maxSDUPToC: UInt16
        /// The PHYs on which the central may send.
        public var phyCToP: PHYSet
        /// The PHYs on which the peripheral may send.
        public var phyPToC: PHYSet
        /// How often the central may send a PDU again, 0 to 255; a recommendation to the controller.
        public var rtnCToP: UInt8
        /// How often the peripheral may send a PDU again, 0 to 255; a recommendation to the controller.
        public var rtnPToC: UInt8

        /// Creates the parameters of one stream.
        public init(
            cisID: UInt8,
            maxSDUCToP: UInt16,
            maxSDUPToC: UInt16,
            phyCToP: PHYSet = .le2M,
            phyPToC: PHYSet = .le2M,
            rtnCToP: UInt8 = 2,
            rtnPToC: UInt8 = 2
        ) {
            self.cisID = cisID
            self.maxSDUCToP = maxSDUCToP
            self.maxSDUPToC = maxSDUPToC
            self.phyCToP = phyCToP
            self.phyPToC = phyPToC
            self.rtnCToP = rtnCToP
            self.rtnPToC = rtnPToC
        }

        init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
            cisID = try reader.readUInt8()
            maxSDUCToP = try reader.readUInt16()
            maxSDUPToC = try reader.readUInt16()
            phyCToP = PHYSet(rawValue: try reader.readUInt8())
            phyPToC = PHYSet(rawValue: try reader.readUInt8())
            rtnCToP = try reader.readUInt8()
            rtnPToC = try reader.readUInt8()
        }

        func encode(into buffer: inout PacketBuffer) {
            buffer.append(cisID)
            buffer.append(maxSDUCToP)
            buffer.append(maxSDUPToC)
            buffer.append(phyCToP.rawValue)
            buffer.append(phyPToC.rawValue)
            buffer.append(rtnCToP)
            buffer.append(rtnPToC)
        }
    }

    /// The handles of the group's streams, in the order of the command.
    public struct ReturnParameters: BLEHCI.ReturnParameters, Equatable {
        /// 0x00 to 0xEF.
        public var cigID: UInt8
        /// The handles of the streams.
        public var connectionHandles: [ConnectionHandle]

        /// Creates the return parameters of a command that succeeded.
        public init(cigID: UInt8, connectionHandles: [ConnectionHandle]) {
            self.cigID = cigID
            self.connectionHandles = connectionHandles
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            cigID = try reader.readUInt8()
            connectionHandles = try reader.readConnectionHandles()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(cigID)
            buffer.append(connectionHandles)
        }
    }

    /// The maximum number of streams in one command, by the length of its packet.
    public static let maximumCount = 26

    /// Identifies the group, 0x00 to 0xEF.
    public let cigID: UInt8
    /// The time between two SDUs from the central, in microseconds, 0x0000FF to 0x0FFFFF.
    public let sduIntervalCToP: UInt32
    /// The time between two SDUs from the peripherals, in microseconds, 0x0000FF to 0x0FFFFF.
    public let sduIntervalPToC: UInt32
    /// The worst sleep clock accuracy of the peripherals: from 0, 500 ppm, to 7, 20 ppm.
    public let worstCaseSCA: UInt8
    /// The order of the subevents of the streams; a recommendation to the controller.
    public let packing: ISOPacking
    /// Whether the PDUs are framed.
    public let framing: ISOFraming
    /// The longest time for an SDU from the central, in milliseconds, 0x0005 to 0x0FA0.
    public let maxTransportLatencyCToP: UInt16
    /// The longest time for an SDU from a peripheral, in milliseconds, 0x0005 to 0x0FA0.
    public let maxTransportLatencyPToC: UInt16
    /// The streams.
    public let streams: [CIS]

    /// Creates a command for at most ``maximumCount`` streams. Those beyond are dropped.
    public init(
        cigID: UInt8,
        sduIntervalCToP: UInt32,
        sduIntervalPToC: UInt32,
        worstCaseSCA: UInt8 = 0,
        packing: ISOPacking = .sequential,
        framing: ISOFraming = .unframed,
        maxTransportLatencyCToP: UInt16,
        maxTransportLatencyPToC: UInt16,
        streams: [CIS]
    ) {
        self.cigID = cigID
        self.sduIntervalCToP = sduIntervalCToP
        self.sduIntervalPToC = sduIntervalPToC
        self.worstCaseSCA = worstCaseSCA
        self.packing = packing
        self.framing = framing
        self.maxTransportLatencyCToP = maxTransportLatencyCToP
        self.maxTransportLatencyPToC = maxTransportLatencyPToC
        self.streams = Array(streams.prefix(Self.maximumCount))
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        cigID = try reader.readUInt8()
        sduIntervalCToP = try reader.readUInt24()
        sduIntervalPToC = try reader.readUInt24()
        worstCaseSCA = try reader.readUInt8()
        packing = ISOPacking(rawValue: try reader.readUInt8())
        framing = ISOFraming(rawValue: try reader.readUInt8())
        maxTransportLatencyCToP = try reader.readUInt16()
        maxTransportLatencyPToC = try reader.readUInt16()
        var streams: [CIS] = []
        for _ in 0..<(try reader.readUInt8()) { streams.append(try CIS(decoding: &reader)) }
        try reader.requireEnd()
        self.streams = streams
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(cigID)
        buffer.appendUInt24(sduIntervalCToP)
        buffer.appendUInt24(sduIntervalPToC)
        buffer.append(worstCaseSCA)
        buffer.append(packing.rawValue)
        buffer.append(framing.rawValue)
        buffer.append(maxTransportLatencyCToP)
        buffer.append(maxTransportLatencyPToC)
        buffer.append(UInt8(truncatingIfNeeded: streams.count))
        for stream in streams { stream.encode(into: &buffer) }
    }
}

/// A command to establish streams of a CIG (Vol 4, Part E, 7.8.99).
public struct LECreateCIS: Command, Equatable {
    public typealias ReturnParameters = NoReturnParameters

    public static let opcode = HCIOpcode(group: 0x08, command: 0x0064)

    /// A stream, and the connection with the peripheral that it is for.
    public struct CIS: Sendable, Equatable {
        /// The handle of the stream, from ``LESetCIGParameters``.
        public var cisConnectionHandle: ConnectionHandle
        /// The handle of the connection.
        public var aclConnectionHandle: ConnectionHandle

        /// Creates a pair of handles.
        public init(cisConnectionHandle: ConnectionHandle, aclConnectionHandle: ConnectionHandle) {
            self.cisConnectionHandle = cisConnectionHandle
            self.aclConnectionHandle = aclConnectionHandle
        }
    }

    /// The maximum number of streams in one command.
    public static let maximumCount = 31

    /// The streams to establish.
    public let streams: [CIS]

    /// Creates a command for at most ``maximumCount`` streams. Those beyond are dropped.
    public init(streams: [CIS]) {
        self.streams = Array(streams.prefix(Self.maximumCount))
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        var streams: [CIS] = []
        for _ in 0..<(try reader.readUInt8()) {
            let cis = try reader.readConnectionHandle()
            streams.append(CIS(cisConnectionHandle: cis, aclConnectionHandle: try reader.readConnectionHandle()))
        }
        try reader.requireEnd()
        self.streams = streams
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(UInt8(truncatingIfNeeded: streams.count))
        for stream in streams {
            buffer.append(stream.cisConnectionHandle.rawValue)
            buffer.append(stream.aclConnectionHandle.rawValue)
        }
    }
}

extension ByteReader {
    /// Reads a count of one byte and as many connection handles.
    mutating func readConnectionHandles() throws(PacketDecodingError) -> [ConnectionHandle] {
        var handles: [ConnectionHandle] = []
        for _ in 0..<(try readUInt8()) { handles.append(try readConnectionHandle()) }
        return handles
    }
}

extension PacketBuffer {
    /// Appends a count of one byte and the handles, cut after 255.
    mutating func append(_ handles: [ConnectionHandle]) {
        let handles = handles.prefix(255)
        append(UInt8(truncatingIfNeeded: handles.count))
        for handle in handles { append(handle.rawValue) }
    }
}
