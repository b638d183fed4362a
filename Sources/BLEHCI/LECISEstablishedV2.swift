import BLEByteCoding
import BluetoothTypes

/// An event that reports that a CIS is established, or why it is not, version 2 (Vol 4, Part E, 7.7.65.25).
///
/// Its properties are in the order of their sizes: larger ones would make every ``Event`` a byte larger, and decoding
/// slower.
public struct LECISEstablishedV2: LEEventParameters, Sendable, Equatable {
    /// The subevent code of LE CIS Established [v2], 0x2A.
    public static let subeventCode: UInt8 = 0x2A

    /// `CIG_Sync_Delay`, in microseconds, 0x0000EA to 0x7FFFFF.
    public var cigSyncDelay: UInt32
    /// `CIS_Sync_Delay`, in microseconds, 0x0000EA to 0x7FFFFF.
    public var cisSyncDelay: UInt32
    /// `Transport_Latency_C_To_P`, in microseconds, 0x0000EA to 0x7FFFFF.
    public var transportLatencyCToP: UInt32
    /// `Transport_Latency_P_To_C`, in microseconds, 0x0000EA to 0x7FFFFF.
    public var transportLatencyPToC: UInt32
    /// `SDU_Interval_C_To_P`, in microseconds, 0x0000FF to 0x0FFFFF; 0 if the central sends no data.
    public var sduIntervalCToP: UInt32
    /// `SDU_Interval_P_To_C`, in microseconds, 0x0000FF to 0x0FFFFF; 0 if the peripheral sends no data.
    public var sduIntervalPToC: UInt32
    /// `Connection_Handle`: the handle of the CIS.
    public var connectionHandle: ConnectionHandle
    /// `Max_PDU_C_To_P`: the longest payload from the central, in bytes, 0 to 251.
    public var maxPDUCToP: UInt16
    /// `Max_PDU_P_To_C`: the longest payload from the peripheral, in bytes, 0 to 251.
    public var maxPDUPToC: UInt16
    /// `ISO_Interval`, in units of 1.25 ms, 0x0004 to 0x0C80.
    public var isoInterval: UInt16
    /// `Max_SDU_C_To_P`: the longest SDU from the central, in bytes, 0 to 0x0FFF.
    public var maxSDUCToP: UInt16
    /// `Max_SDU_P_To_C`: the longest SDU from the peripheral, in bytes, 0 to 0x0FFF.
    public var maxSDUPToC: UInt16
    private var subIntervalLow: UInt16
    /// `Status`: success, or the reason for the failure.
    public var status: HCIErrorCode
    /// `PHY_C_To_P`: the PHY on which the central sends.
    public var phyCToP: PHY
    /// `PHY_P_To_C`: the PHY on which the peripheral sends.
    public var phyPToC: PHY
    /// `NSE`: maximum number of subevents in each CIS event, 1 to 31.
    public var nse: UInt8
    /// `BN_C_To_P`: the burst number of the central, 0 to 15; 0 if it sends no data.
    public var bnCToP: UInt8
    /// `BN_P_To_C`: the burst number of the peripheral, 0 to 15; 0 if it sends no data.
    public var bnPToC: UInt8
    /// `FT_C_To_P`: the flush timeout of the central, in ISO intervals, 1 to 255.
    public var ftCToP: UInt8
    /// `FT_P_To_C`: the flush timeout of the peripheral, in ISO intervals, 1 to 255.
    public var ftPToC: UInt8
    /// `Framing`: whether the PDUs are framed.
    public var framing: ISOFraming
    private var subIntervalHigh: UInt8

    /// `Sub_Interval`, in microseconds, the time between two subevents of a CIS event; 0 if a CIS event has one.
    public var subInterval: UInt32 {
        get { UInt32(subIntervalHigh) << 16 | UInt32(subIntervalLow) }
        set {
            subIntervalLow = UInt16(truncatingIfNeeded: newValue)
            subIntervalHigh = UInt8(truncatingIfNeeded: newValue >> 16)
        }
    }

    /// Creates the event from its parameters.
    public init(
        status: HCIErrorCode = .success,
        connectionHandle: ConnectionHandle,
        cigSyncDelay: UInt32,
        cisSyncDelay: UInt32,
        transportLatencyCToP: UInt32,
        transportLatencyPToC: UInt32,
        phyCToP: PHY,
        phyPToC: PHY,
        nse: UInt8,
        bnCToP: UInt8,
        bnPToC: UInt8,
        ftCToP: UInt8,
        ftPToC: UInt8,
        maxPDUCToP: UInt16,
        maxPDUPToC: UInt16,
        isoInterval: UInt16,
        subInterval: UInt32 = 0,
        maxSDUCToP: UInt16,
        maxSDUPToC: UInt16,
        sduIntervalCToP: UInt32,
        sduIntervalPToC: UInt32,
        framing: ISOFraming
    ) {
        self.status = status
        self.connectionHandle = connectionHandle
        self.cigSyncDelay = cigSyncDelay
        self.cisSyncDelay = cisSyncDelay
        self.transportLatencyCToP = transportLatencyCToP
        self.transportLatencyPToC = transportLatencyPToC
        self.phyCToP = phyCToP
        self.phyPToC = phyPToC
        self.nse = nse
        self.bnCToP = bnCToP
        self.bnPToC = bnPToC
        self.ftCToP = ftCToP
        self.ftPToC = ftPToC
        self.maxPDUCToP = maxPDUCToP
        self.maxPDUPToC = maxPDUPToC
        self.isoInterval = isoInterval
        subIntervalLow = UInt16(truncatingIfNeeded: subInterval)
        subIntervalHigh = UInt8(truncatingIfNeeded: subInterval >> 16)
        self.maxSDUCToP = maxSDUCToP
        self.maxSDUPToC = maxSDUPToC
        self.sduIntervalCToP = sduIntervalCToP
        self.sduIntervalPToC = sduIntervalPToC
        self.framing = framing
    }

    /// Decodes the parameters, which are 42 bytes long.
    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = HCIErrorCode(rawValue: try reader.readUInt8())
        connectionHandle = try reader.readConnectionHandle()
        cigSyncDelay = try reader.readUInt24()
        cisSyncDelay = try reader.readUInt24()
        transportLatencyCToP = try reader.readUInt24()
        transportLatencyPToC = try reader.readUInt24()
        phyCToP = PHY(rawValue: try reader.readUInt8())
        phyPToC = PHY(rawValue: try reader.readUInt8())
        nse = try reader.readUInt8()
        bnCToP = try reader.readUInt8()
        bnPToC = try reader.readUInt8()
        ftCToP = try reader.readUInt8()
        ftPToC = try reader.readUInt8()
        maxPDUCToP = try reader.readUInt16()
        maxPDUPToC = try reader.readUInt16()
        isoInterval = try reader.readUInt16()
        subIntervalLow = try reader.readUInt16()
        subIntervalHigh = try reader.readUInt8()
        maxSDUCToP = try reader.readUInt16()
        maxSDUPToC = try reader.readUInt16()
        sduIntervalCToP = try reader.readUInt24()
        sduIntervalPToC = try reader.readUInt24()
        framing = ISOFraming(rawValue: try reader.readUInt8())
        try reader.requireEnd()
    }

    /// Appends the parameters, which are 42 bytes long, without the event header and the subevent code.
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(connectionHandle.rawValue)
        buffer.appendUInt24(cigSyncDelay)
        buffer.appendUInt24(cisSyncDelay)
        buffer.appendUInt24(transportLatencyCToP)
        buffer.appendUInt24(transportLatencyPToC)
        buffer.append(phyCToP.rawValue)
        buffer.append(phyPToC.rawValue)
        buffer.append(nse)
        buffer.append(bnCToP)
        buffer.append(bnPToC)
        buffer.append(ftCToP)
        buffer.append(ftPToC)
        buffer.append(maxPDUCToP)
        buffer.append(maxPDUPToC)
        buffer.append(isoInterval)
        buffer.appendUInt24(subInterval)
        buffer.append(maxSDUCToP)
        buffer.append(maxSDUPToC)
        buffer.appendUInt24(sduIntervalCToP)
        buffer.appendUInt24(sduIntervalPToC)
        buffer.append(framing.rawValue)
    }
}
