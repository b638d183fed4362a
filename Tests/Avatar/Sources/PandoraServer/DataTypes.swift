import BLE
import FoundationEssentials
import GRPCCore

// Pandora's data types are AD structures. Numbers in them are little-endian, and UUIDs are texts in big-endian order.

extension ADType {
    fileprivate static let classOfDevice = ADType(rawValue: 0x0D)
    fileprivate static let leSupportedFeatures = ADType(rawValue: 0x27)
}

extension AdvertisingData {
    init(_ types: Pandora_DataTypes) throws {
        self.init()
        try append(.incompleteServiceUUIDs16, types.incompleteServiceClassUuids16)
        try append(.completeServiceUUIDs16, types.completeServiceClassUuids16)
        try append(.incompleteServiceUUIDs32, types.incompleteServiceClassUuids32)
        try append(.completeServiceUUIDs32, types.completeServiceClassUuids32)
        try append(.incompleteServiceUUIDs128, types.incompleteServiceClassUuids128)
        try append(.completeServiceUUIDs128, types.completeServiceClassUuids128)
        if types.includeShortenedLocalName || types.includeCompleteLocalName || types.includeTxPowerLevel
            || types.includeClassOfDevice || types.includeAdvertisingInterval
        {
            throw RPCError(code: .unimplemented, message: "a test gives the values of the data types itself")
        }
        append(.shortenedLocalName, Array(types.shortenedLocalName.utf8))
        append(.completeLocalName, Array(types.completeLocalName.utf8))
        append(.txPowerLevel, types.txPowerLevel, length: 1)
        append(.classOfDevice, types.classOfDevice, length: 3)
        if types.peripheralConnectionIntervalMin != 0 {
            let minimum = UInt16(truncatingIfNeeded: types.peripheralConnectionIntervalMin)
            let maximum = UInt16(truncatingIfNeeded: types.peripheralConnectionIntervalMax)
            append(.peripheralConnectionIntervalRange(minimum, max(minimum, maximum)))
        }
        try append(.solicitedServiceUUIDs16, types.serviceSolicitationUuids16)
        try append(.solicitedServiceUUIDs32, types.serviceSolicitationUuids32)
        try append(.solicitedServiceUUIDs128, types.serviceSolicitationUuids128)
        try append(.serviceData16, types.serviceDataUuid16)
        try append(.serviceData32, types.serviceDataUuid32)
        try append(.serviceData128, types.serviceDataUuid128)
        append(.appearance, types.appearance, length: 2)
        append(.advertisingInterval, types.advertisingInterval, length: 2)
        append(.uri, Array(types.uri.utf8))
        append(.leSupportedFeatures, Array(types.leSupportedFeatures))
        append(.manufacturerSpecificData, Array(types.manufacturerSpecificData))
        switch types.leDiscoverabilityMode {
        case .discoverableLimited: append(.flags([.limitedDiscoverable, .brEdrNotSupported]))
        case .discoverableGeneral: append(.flags([.generalDiscoverable, .brEdrNotSupported]))
        default: break
        }
    }

    /// Appends a structure, unless its data is empty.
    private mutating func append(_ type: ADType, _ data: [UInt8]) {
        if !data.isEmpty { append(.raw(type, data)) }
    }

    /// Appends a number, unless it is 0.
    private mutating func append(_ type: ADType, _ number: UInt32, length: Int) {
        if number != 0 { append(.raw(type, (0..<length).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) })) }
    }

    private mutating func append(_ type: ADType, _ uuids: [String]) throws {
        append(type, try uuids.flatMap(AdvertisingData.bytes))
    }

    private mutating func append(_ type: ADType, _ serviceData: [String: Data]) throws {
        for (uuid, data) in serviceData.sorted(by: { $0.key < $1.key }) {
            append(type, try AdvertisingData.bytes(of: uuid) + data)
        }
    }

    private static func bytes(of uuid: String) throws -> [UInt8] {
        let digits = Array(uuid.filter { $0 != "-" })
        let bytes = stride(from: 0, to: digits.count, by: 2).compactMap { index in
            UInt8(String(digits[index...].prefix(2)), radix: 16)
        }
        guard bytes.count * 2 == digits.count else {
            throw RPCError(code: .invalidArgument, message: "\(uuid) is not a UUID")
        }
        return bytes.reversed()
    }
}

extension Pandora_DataTypes {
    init(_ data: AdvertisingData) {
        self.init()
        data.forEachStructure { structure in
            let bytes = structure.data.withUnsafeBytes { Array($0) }
            add(structure.type, bytes)
        }
    }

    private mutating func add(_ type: ADType, _ bytes: [UInt8]) {
        switch type {
        case .incompleteServiceUUIDs16: incompleteServiceClassUuids16 += Self.uuids(bytes, 2)
        case .completeServiceUUIDs16: completeServiceClassUuids16 += Self.uuids(bytes, 2)
        case .incompleteServiceUUIDs32: incompleteServiceClassUuids32 += Self.uuids(bytes, 4)
        case .completeServiceUUIDs32: completeServiceClassUuids32 += Self.uuids(bytes, 4)
        case .incompleteServiceUUIDs128: incompleteServiceClassUuids128 += Self.uuids(bytes, 16)
        case .completeServiceUUIDs128: completeServiceClassUuids128 += Self.uuids(bytes, 16)
        case .shortenedLocalName: shortenedLocalName = String(decoding: bytes, as: UTF8.self)
        case .completeLocalName: completeLocalName = String(decoding: bytes, as: UTF8.self)
        case .txPowerLevel: txPowerLevel = Self.number(bytes)
        case .classOfDevice: classOfDevice = Self.number(bytes)
        case .peripheralConnectionIntervalRange where bytes.count == 4:
            peripheralConnectionIntervalMin = Self.number(bytes.prefix(2))
            peripheralConnectionIntervalMax = Self.number(bytes.dropFirst(2))
        case .solicitedServiceUUIDs16: serviceSolicitationUuids16 += Self.uuids(bytes, 2)
        case .solicitedServiceUUIDs32: serviceSolicitationUuids32 += Self.uuids(bytes, 4)
        case .solicitedServiceUUIDs128: serviceSolicitationUuids128 += Self.uuids(bytes, 16)
        case .serviceData16: Self.add(bytes, 2, to: &serviceDataUuid16)
        case .serviceData32: Self.add(bytes, 4, to: &serviceDataUuid32)
        case .serviceData128: Self.add(bytes, 16, to: &serviceDataUuid128)
        case .appearance: appearance = Self.number(bytes)
        case .advertisingInterval: advertisingInterval = Self.number(bytes)
        case .uri: uri = String(decoding: bytes, as: UTF8.self)
        case .leSupportedFeatures: leSupportedFeatures = Data(bytes)
        case .manufacturerSpecificData: manufacturerSpecificData = Data(bytes)
        case .flags:
            let flags = AdvertisingFlags(rawValue: bytes.first ?? 0)
            leDiscoverabilityMode =
                flags.contains(.generalDiscoverable)
                ? .discoverableGeneral : flags.contains(.limitedDiscoverable) ? .discoverableLimited : .notDiscoverable
        default: break
        }
    }

    private static func number(_ bytes: some BidirectionalCollection<UInt8>) -> UInt32 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func uuids(_ bytes: [UInt8], _ length: Int) -> [String] {
        stride(from: 0, through: bytes.count - length, by: length).map { text(bytes[$0..<$0 + length]) }
    }

    private static func add(_ bytes: [UInt8], _ length: Int, to serviceData: inout [String: Data]) {
        guard bytes.count >= length else { return }
        serviceData[text(bytes.prefix(length))] = Data(bytes.dropFirst(length))
    }

    /// The digits of a UUID, in groups if it has 128 bits.
    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        var text = ""
        for (index, byte) in bytes.reversed().enumerated() {
            if bytes.count == 16, [4, 6, 8, 10].contains(index) { text += "-" }
            let digits = String(byte, radix: 16, uppercase: true)
            text += digits.count == 1 ? "0" + digits : digits
        }
        return text
    }
}
