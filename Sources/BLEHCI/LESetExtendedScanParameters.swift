import BLEByteCoding

/// A command to set the parameters of extended scanning on each PHY (Vol 4, Part E, 7.8.64).
public struct LESetExtendedScanParameters: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = HCIOpcode(group: 0x08, command: 0x0041)

    /// The scan parameters for one PHY.
    public struct PHYParameters: Sendable, Equatable {
        /// Whether the scanner requests scan responses on this PHY.
        public var scanType: ScanType
        /// In units of 0.625 ms, 0x0004 to 0xFFFF.
        public var scanInterval: UInt16
        /// In units of 0.625 ms, at most the interval.
        public var scanWindow: UInt16

        /// Creates parameters. By default, the scan is passive and continuous: 10 ms of 10 ms.
        public init(scanType: ScanType = .passive, scanInterval: UInt16 = 0x0010, scanWindow: UInt16 = 0x0010) {
            self.scanType = scanType
            self.scanInterval = scanInterval
            self.scanWindow = scanWindow
        }

        init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
            scanType = try reader.readValue("Scan_Type")
            scanInterval = try reader.readUInt16()
            scanWindow = try reader.readUInt16()
        }

        func encode(into buffer: inout PacketBuffer) {
            buffer.append(scanType.rawValue)
            buffer.append(scanInterval)
            buffer.append(scanWindow)
        }
    }

    /// The kind of address in scan requests.
    public var ownAddressType: OwnAddressType
    /// The advertisers that are reported.
    public var scanningFilterPolicy: ScanningFilterPolicy
    /// The parameters for the LE 1M PHY; nil if it is not scanned. A command without parameters for any PHY has the
    /// default parameters for this PHY, because a controller must get at least one.
    public var le1M: PHYParameters?
    /// The parameters for the LE Coded PHY; nil if it is not scanned.
    public var leCoded: PHYParameters?

    /// Creates a command. By default, only the LE 1M PHY is scanned, and all advertisers are reported.
    public init(
        ownAddressType: OwnAddressType = .public,
        scanningFilterPolicy: ScanningFilterPolicy = .basicUnfiltered,
        le1M: PHYParameters? = PHYParameters(),
        leCoded: PHYParameters? = nil
    ) {
        self.ownAddressType = ownAddressType
        self.scanningFilterPolicy = scanningFilterPolicy
        self.le1M = le1M
        self.leCoded = leCoded
    }

    /// The PHYs to scan, as in the command.
    public var scanningPHYs: PHYSet {
        var phys: PHYSet = []
        if encodedLE1M != nil { phys.insert(.le1M) }
        if leCoded != nil { phys.insert(.leCoded) }
        return phys
    }

    private var encodedLE1M: PHYParameters? { le1M ?? (leCoded == nil ? PHYParameters() : nil) }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        ownAddressType = try reader.readValue("Own_Address_Type")
        scanningFilterPolicy = try reader.readValue("Scanning_Filter_Policy")
        let phys = try reader.readPHYSet(among: [.le1M, .leCoded], field: "Scanning_PHYs")
        le1M = phys.contains(.le1M) ? try PHYParameters(decoding: &reader) : nil
        leCoded = phys.contains(.leCoded) ? try PHYParameters(decoding: &reader) : nil
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(ownAddressType.rawValue)
        buffer.append(scanningFilterPolicy.rawValue)
        buffer.append(scanningPHYs.rawValue)
        encodedLE1M?.encode(into: &buffer)
        leCoded?.encode(into: &buffer)
    }
}

extension ByteReader {
    /// Reads a set of PHYs that is not empty and is a subset of `allowed`.
    mutating func readPHYSet(
        among allowed: PHYSet,
        field: StaticString
    ) throws(PacketDecodingError) -> PHYSet {
        let phys = PHYSet(rawValue: try readUInt8())
        guard allowed.isSuperset(of: phys), !phys.isEmpty else {
            throw .invalidValue(UInt64(phys.rawValue), field: field)
        }
        return phys
    }
}
