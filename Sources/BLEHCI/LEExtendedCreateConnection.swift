import BLEByteCoding
import BluetoothTypes

/// A command to create a connection to a legacy or extended advertiser, version 1 (Vol 4, Part E, 7.8.66).
public struct LEExtendedCreateConnection: Command, Equatable {
    public typealias ReturnParameters = NoReturnParameters

    public static let opcode = HCIOpcode(group: 0x08, command: 0x0043)

    /// The scan parameters for one PHY, and the connection parameters for a connection on it.
    public struct PHYParameters: Sendable, Equatable {
        /// In units of 0.625 ms, 0x0004 to 0xFFFF.
        public var scanInterval: UInt16
        /// In units of 0.625 ms, at most the interval.
        public var scanWindow: UInt16
        /// In units of 1.25 ms, 0x0006 to 0x0C80.
        public var connectionIntervalMin: UInt16
        /// In units of 1.25 ms, 0x0006 to 0x0C80.
        public var connectionIntervalMax: UInt16
        /// In connection events, at most 0x01F3.
        public var maxLatency: UInt16
        /// In units of 10 ms, 0x000A to 0x0C80.
        public var supervisionTimeout: UInt16
        /// In units of 0.625 ms.
        public var minCELength: UInt16
        /// In units of 0.625 ms.
        public var maxCELength: UInt16

        /// Creates parameters. By default, the controller scans all the time (60 ms of 60 ms), and requests an interval
        /// of 30 to 50 ms. The latency is 0, and the supervision timeout is 5 s.
        public init(
            scanInterval: UInt16 = 0x0060,
            scanWindow: UInt16 = 0x0060,
            connectionIntervalMin: UInt16 = 0x0018,
            connectionIntervalMax: UInt16 = 0x0028,
            maxLatency: UInt16 = 0,
            supervisionTimeout: UInt16 = 0x01F4,
            minCELength: UInt16 = 0,
            maxCELength: UInt16 = 0
        ) {
            self.scanInterval = scanInterval
            self.scanWindow = scanWindow
            self.connectionIntervalMin = connectionIntervalMin
            self.connectionIntervalMax = connectionIntervalMax
            self.maxLatency = maxLatency
            self.supervisionTimeout = supervisionTimeout
            self.minCELength = minCELength
            self.maxCELength = maxCELength
        }

        init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
            scanInterval = try reader.readUInt16()
            scanWindow = try reader.readUInt16()
            connectionIntervalMin = try reader.readUInt16()
            connectionIntervalMax = try reader.readUInt16()
            maxLatency = try reader.readUInt16()
            supervisionTimeout = try reader.readUInt16()
            minCELength = try reader.readUInt16()
            maxCELength = try reader.readUInt16()
        }

        func encode(into buffer: inout PacketBuffer) {
            buffer.append(scanInterval)
            buffer.append(scanWindow)
            buffer.append(connectionIntervalMin)
            buffer.append(connectionIntervalMax)
            buffer.append(maxLatency)
            buffer.append(supervisionTimeout)
            buffer.append(minCELength)
            buffer.append(maxCELength)
        }
    }

    /// Whether the controller connects to ``peerAddress`` or to any device on the filter accept list.
    public var initiatorFilterPolicy: InitiatorFilterPolicy
    /// The kind of address with which this device connects.
    public var ownAddressType: OwnAddressType
    /// Ignored if the filter accept list is used.
    public var peerAddress: DeviceAddress
    /// The parameters for the LE 1M PHY; nil if it is not scanned. A command without parameters for any PHY has the
    /// default parameters for this PHY, because a controller must get at least one.
    public var le1M: PHYParameters?
    /// The parameters for connections on the LE 2M PHY, which is never scanned; nil for no connections on it.
    public var le2M: PHYParameters?
    /// The parameters for the LE Coded PHY; nil if it is not scanned.
    public var leCoded: PHYParameters?

    /// Creates a command. At least one of ``le1M`` and ``leCoded`` must have parameters.
    public init(
        initiatorFilterPolicy: InitiatorFilterPolicy = .peerAddress,
        ownAddressType: OwnAddressType = .public,
        peerAddress: DeviceAddress = DeviceAddress(0, isRandom: false),
        le1M: PHYParameters? = PHYParameters(),
        le2M: PHYParameters? = nil,
        leCoded: PHYParameters? = nil
    ) {
        self.initiatorFilterPolicy = initiatorFilterPolicy
        self.ownAddressType = ownAddressType
        self.peerAddress = peerAddress
        self.le1M = le1M
        self.le2M = le2M
        self.leCoded = leCoded
    }

    /// The PHYs with parameters, as in the command.
    public var initiatingPHYs: PHYSet {
        var phys: PHYSet = []
        if encodedLE1M != nil { phys.insert(.le1M) }
        if le2M != nil { phys.insert(.le2M) }
        if leCoded != nil { phys.insert(.leCoded) }
        return phys
    }

    private var encodedLE1M: PHYParameters? {
        le1M ?? (le2M == nil && leCoded == nil ? PHYParameters() : nil)
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        initiatorFilterPolicy = try reader.readValue("Initiator_Filter_Policy")
        ownAddressType = try reader.readValue("Own_Address_Type")
        peerAddress = try reader.readDeviceAddress("Peer_Address_Type")
        let phys = try reader.readPHYSet(among: [.le1M, .le2M, .leCoded], field: "Initiating_PHYs")
        le1M = phys.contains(.le1M) ? try PHYParameters(decoding: &reader) : nil
        le2M = phys.contains(.le2M) ? try PHYParameters(decoding: &reader) : nil
        leCoded = phys.contains(.leCoded) ? try PHYParameters(decoding: &reader) : nil
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(initiatorFilterPolicy.rawValue)
        buffer.append(ownAddressType.rawValue)
        buffer.append(peerAddress)
        buffer.append(initiatingPHYs.rawValue)
        encodedLE1M?.encode(into: &buffer)
        le2M?.encode(into: &buffer)
        leCoded?.encode(into: &buffer)
    }
}
