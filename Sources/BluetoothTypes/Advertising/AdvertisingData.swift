import BLEByteCoding

/// Advertising or scan response data that an app builds or has received: the AD structures, as they are sent.
///
/// Malformed received data is not an error: the accessors return the structures before the malformed part.
public struct AdvertisingData: Hashable, Sendable {
    /// The data as sent.
    public private(set) var bytes: [UInt8]

    /// No data.
    public init() {
        bytes = []
    }

    /// Wraps received data without validating it.
    public init(decoding bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Encodes structures, in their order.
    public init(_ structures: [Structure]) {
        bytes = PacketBuffer.bytes { buffer in
            for structure in structures { structure.encode(into: &buffer) }
        }
    }

    /// The length of the data, in bytes.
    public var length: Int { bytes.count }

    /// Appends a structure after the others.
    public mutating func append(_ structure: Structure) {
        bytes += PacketBuffer.bytes { structure.encode(into: &$0) }
    }

    /// Appends all structures of other data.
    package mutating func append(_ other: AdvertisingData) {
        bytes += other.bytes
    }

    /// The structures that can be read, without padding or other bytes after them.
    package var significantPart: AdvertisingData {
        var length = 0
        forEachStructure { length += $0.data.byteCount + 2 }
        return length == bytes.count ? self : AdvertisingData(decoding: Array(bytes.prefix(length)))
    }

    /// Calls `body` with each structure that can be read.
    public func forEachStructure(_ body: (borrowing ADStructure) -> Void) {
        var iterator = ADStructureIterator(bytes.rawSpan)
        while let structure = try? iterator.next() { body(structure) }
    }
}

extension AdvertisingData {
    /// The complete local name, or else the shortened name. Invalid UTF-8 is replaced.
    public var localName: String? {
        var shortened: String?
        var complete: String?
        forEachStructure { structure in
            if structure.type == .completeLocalName, complete == nil { complete = text(structure.data) }
            if structure.type == .shortenedLocalName, shortened == nil { shortened = text(structure.data) }
        }
        return complete ?? shortened
    }

    /// Whether ``localName`` is the whole name.
    public var isNameComplete: Bool { contains(.completeLocalName) }

    /// The services of all lists, complete or not, in their order.
    public var serviceUUIDs: [BluetoothUUID] {
        var result: [BluetoothUUID] = []
        forEachServiceUUID { result.append($0) }
        return result
    }

    /// Calls `body` with each of ``serviceUUIDs``, without an array of them.
    package func forEachServiceUUID(_ body: (BluetoothUUID) -> Void) {
        forEachUUID(where: { $0.isServiceList }, body)
    }

    /// The services that the device looks for.
    public var solicitedServiceUUIDs: [BluetoothUUID] {
        var result: [BluetoothUUID] = []
        forEachUUID { type in
            type == .solicitedServiceUUIDs16 || type == .solicitedServiceUUIDs32 || type == .solicitedServiceUUIDs128
        } _: {
            result.append($0)
        }
        return result
    }

    /// Service data by service. If a service occurs several times, the last is used.
    public var serviceData: [BluetoothUUID: [UInt8]] {
        var result: [BluetoothUUID: [UInt8]] = [:]
        forEachStructure { structure in
            guard [.serviceData16, .serviceData32, .serviceData128].contains(structure.type),
                let length = structure.uuidLength
            else { return }
            var reader = ByteReader(structure.data)
            guard let uuid = try? BluetoothUUID(decoding: reader.readBytes(count: length)) else { return }
            result[uuid] = [UInt8](copying: reader.readRemaining())
        }
        return result
    }

    /// Data that a company defines.
    public struct ManufacturerData: Hashable, Sendable {
        /// The company.
        public var company: CompanyIdentifier
        /// The data after the company identifier.
        public var data: [UInt8]

        /// Creates data of a company.
        public init(company: CompanyIdentifier, data: [UInt8]) {
            self.company = company
            self.data = data
        }
    }

    /// All data that companies define.
    public var manufacturerData: [ManufacturerData] {
        var result: [ManufacturerData] = []
        forEachStructure { structure in
            guard structure.type == .manufacturerSpecificData else { return }
            var reader = ByteReader(structure.data)
            guard let company = try? reader.readUInt16() else { return }
            result.append(
                ManufacturerData(
                    company: CompanyIdentifier(rawValue: company),
                    data: [UInt8](copying: reader.readRemaining())
                )
            )
        }
        return result
    }

    /// The transmitted power in dBm: -127 to 127.
    public var txPower: Int8? {
        first(.txPowerLevel, length: 1).map { Int8(truncatingIfNeeded: $0) }
    }

    /// The appearance; nil if there is none.
    public var appearance: Appearance? {
        first(.appearance, length: 2).map { Appearance(rawValue: UInt16(truncatingIfNeeded: $0)) }
    }

    /// The flags; nil if there are none.
    public var flags: AdvertisingFlags? {
        var flags: AdvertisingFlags?
        forEachStructure { structure in
            if structure.type == .flags, flags == nil {
                flags = structure.data[checked: 0].map { AdvertisingFlags(rawValue: $0) }
            }
        }
        return flags
    }

    /// In units of 0.625 ms.
    public var advertisingInterval: UInt32? {
        first(.advertisingInterval, length: 2) ?? first(.advertisingIntervalLong, length: 3)
            ?? first(.advertisingIntervalLong, length: 4)
    }

    private func contains(_ type: ADType) -> Bool {
        var isFound = false
        forEachStructure { if $0.type == type { isFound = true } }
        return isFound
    }

    private func forEachUUID(where isWanted: (ADType) -> Bool, _ body: (BluetoothUUID) -> Void) {
        forEachStructure { structure in
            guard isWanted(structure.type) else { return }
            var uuids = structure.uuids
            while let uuid = uuids.next() { body(uuid) }
        }
    }

    /// Returns the little-endian number in the first structure with this type and exactly this length.
    private func first(_ type: ADType, length: Int) -> UInt32? {
        var value: UInt32?
        forEachStructure { structure in
            guard structure.type == type, structure.data.byteCount == length, value == nil else { return }
            var number: UInt32 = 0
            for index in (0..<length).reversed() { number = number << 8 | UInt32(structure.data[checked: index] ?? 0) }
            value = number
        }
        return value
    }
}

/// Decodes UTF-8. Invalid bytes are replaced.
private func text(_ bytes: RawSpan) -> String {
    unsafe bytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
}
