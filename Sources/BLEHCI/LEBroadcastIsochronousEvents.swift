import BLEByteCoding
import BluetoothTypes

/// The timing of a BIG that this controller sends or receives (Vol 6, Part B, 4.4.6).
public struct BIGTiming: Sendable, Equatable {
    /// The longest time for an SDU, in microseconds, 0x0000EA to 0x7FFFFF.
    public var transportLatency: UInt32
    /// The number of subevents of each stream in each BIG event, 1 to 31.
    public var nse: UInt8
    /// The burst number: the new payloads of each stream in each BIG event, 1 to 7.
    public var bn: UInt8
    /// The pretransmission offset in ISO intervals, 0 to 15.
    public var pto: UInt8
    /// The immediate repetition count: how often each payload is sent in each BIG event, 1 to 15.
    public var irc: UInt8
    /// The longest payload in bytes, 1 to 251.
    public var maxPDU: UInt16
    /// In units of 1.25 ms, 0x0004 to 0x0C80.
    public var isoInterval: UInt16

    /// Creates a timing. By default each payload is sent once.
    public init(
        transportLatency: UInt32,
        nse: UInt8 = 1,
        bn: UInt8 = 1,
        pto: UInt8 = 0,
        irc: UInt8 = 1,
        maxPDU: UInt16,
        isoInterval: UInt16
    ) {
        self.transportLatency = transportLatency
        self.nse = nse
        self.bn = bn
        self.pto = pto
        self.irc = irc
        self.maxPDU = maxPDU
        self.isoInterval = isoInterval
    }

    /// The timing of a group that was not established.
    fileprivate static let none = BIGTiming(transportLatency: 0, nse: 0, bn: 0, irc: 0, maxPDU: 0, isoInterval: 0)
}

/// An event that reports that this device sends a BIG, or why it does not (Vol 4, Part E, 7.7.65.27).
///
/// A failure has only the status and the BIG handle. The other parameters are not decoded, because some controllers
/// send a count that does not match the handles after it.
public struct LECreateBIGComplete: LEEventParameters, Equatable, Sendable {
    public static let subeventCode: UInt8 = 0x1B

    /// Success, or the reason for the failure.
    public var status: HCIErrorCode
    /// 0x00 to 0xEF.
    public var bigHandle: UInt8
    /// The longest time for the PDUs of a BIG event, in microseconds, 0x0000EA to 0x7FFFFF.
    public var bigSyncDelay: UInt32
    /// The PHY of the streams.
    public var phy: PHY
    /// The timing of the group.
    public var timing: BIGTiming
    /// The handles of the streams, in their order.
    public var connectionHandles: [ConnectionHandle]

    /// Creates an event.
    public init(
        status: HCIErrorCode = .success,
        bigHandle: UInt8,
        bigSyncDelay: UInt32,
        phy: PHY,
        timing: BIGTiming,
        connectionHandles: [ConnectionHandle]
    ) {
        self.status = status
        self.bigHandle = bigHandle
        self.bigSyncDelay = bigSyncDelay
        self.phy = phy
        self.timing = timing
        self.connectionHandles = connectionHandles
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = HCIErrorCode(rawValue: try reader.readUInt8())
        bigHandle = try reader.readUInt8()
        guard status == .success else {
            bigSyncDelay = 0
            phy = .none
            timing = .none
            connectionHandles = []
            return
        }
        bigSyncDelay = try reader.readUInt24()
        let transportLatency = try reader.readUInt24()
        phy = PHY(rawValue: try reader.readUInt8())
        timing = try reader.readBIGTiming(transportLatency: transportLatency)
        connectionHandles = try reader.readConnectionHandles()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(bigHandle)
        buffer.appendUInt24(bigSyncDelay)
        buffer.appendUInt24(timing.transportLatency)
        buffer.append(phy.rawValue)
        buffer.append(timing)
        buffer.append(connectionHandles)
    }
}

/// An event that reports that this device receives a BIG, or why it does not (Vol 4, Part E, 7.7.65.29).
///
/// A failure has only the status and the BIG handle, as in ``LECreateBIGComplete``.
public struct LEBIGSyncEstablished: LEEventParameters, Equatable, Sendable {
    public static let subeventCode: UInt8 = 0x1D

    /// Success, or the reason for the failure.
    public var status: HCIErrorCode
    /// 0x00 to 0xEF.
    public var bigHandle: UInt8
    /// The timing of the group.
    public var timing: BIGTiming
    /// The handles of the streams, in the order of ``LEBIGCreateSync``.
    public var connectionHandles: [ConnectionHandle]

    /// Creates an event.
    public init(
        status: HCIErrorCode = .success,
        bigHandle: UInt8,
        timing: BIGTiming,
        connectionHandles: [ConnectionHandle]
    ) {
        self.status = status
        self.bigHandle = bigHandle
        self.timing = timing
        self.connectionHandles = connectionHandles
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = HCIErrorCode(rawValue: try reader.readUInt8())
        bigHandle = try reader.readUInt8()
        guard status == .success else {
            timing = .none
            connectionHandles = []
            return
        }
        let transportLatency = try reader.readUInt24()
        timing = try reader.readBIGTiming(transportLatency: transportLatency)
        connectionHandles = try reader.readConnectionHandles()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(bigHandle)
        buffer.appendUInt24(timing.transportLatency)
        buffer.append(timing)
        buffer.append(connectionHandles)
    }
}

extension ByteReader {
    /// Reads the fields from NSE to ISO_Interval.
    fileprivate mutating func readBIGTiming(transportLatency: UInt32) throws(PacketDecodingError) -> BIGTiming {
        let nse = try readUInt8()
        let bn = try readUInt8()
        let pto = try readUInt8()
        let irc = try readUInt8()
        let maxPDU = try readUInt16()
        return BIGTiming(
            transportLatency: transportLatency,
            nse: nse,
            bn: bn,
            pto: pto,
            irc: irc,
            maxPDU: maxPDU,
            isoInterval: try readUInt16()
        )
    }
}

extension PacketBuffer {
    /// Appends the fields from NSE to ISO_Interval.
    fileprivate mutating func append(_ timing: BIGTiming) {
        append(timing.nse)
        append(timing.bn)
        append(timing.pto)
        append(timing.irc)
        append(timing.maxPDU)
        append(timing.isoInterval)
    }
}
