import ByteCoding

/// Sets how legacy scanning is done (Vol 4, Part E, 7.8.10).
public struct LESetScanParameters: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x000B)

    public var leScanType: ScanType
    /// In units of 0.625 ms, 0x0004 to 0x4000.
    public var leScanInterval: UInt16
    /// In units of 0.625 ms, at most the interval.
    public var leScanWindow: UInt16
    public var ownAddressType: OwnAddressType
    public var scanningFilterPolicy: ScanningFilterPolicy

    public init(
        leScanType: ScanType = .passive,
        leScanInterval: UInt16 = 0x0010,
        leScanWindow: UInt16 = 0x0010,
        ownAddressType: OwnAddressType = .public,
        scanningFilterPolicy: ScanningFilterPolicy = .basicUnfiltered
    ) {
        self.leScanType = leScanType
        self.leScanInterval = leScanInterval
        self.leScanWindow = leScanWindow
        self.ownAddressType = ownAddressType
        self.scanningFilterPolicy = scanningFilterPolicy
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        leScanType = try reader.readValue("Le_Scan_Type")
        leScanInterval = try reader.readUInt16()
        leScanWindow = try reader.readUInt16()
        ownAddressType = try reader.readValue("Own_Address_Type")
        scanningFilterPolicy = try reader.readValue("Scanning_Filter_Policy")
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(leScanType.rawValue)
        buffer.append(leScanInterval)
        buffer.append(leScanWindow)
        buffer.append(ownAddressType.rawValue)
        buffer.append(scanningFilterPolicy.rawValue)
    }
}

/// Starts or stops legacy scanning (Vol 4, Part E, 7.8.11).
public struct LESetScanEnable: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x000C)

    public var leScanEnable: Bool
    public var filterDuplicates: Bool

    public init(leScanEnable: Bool, filterDuplicates: Bool = false) {
        self.leScanEnable = leScanEnable
        self.filterDuplicates = filterDuplicates
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        leScanEnable = try reader.readFlag("Le_Scan_Enable")
        filterDuplicates = try reader.readFlag("Filter_Duplicates")
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(flag: leScanEnable)
        buffer.append(flag: filterDuplicates)
    }
}
