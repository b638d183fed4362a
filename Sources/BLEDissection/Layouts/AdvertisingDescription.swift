import BLEByteCoding
import BluetoothTypes

extension Value {
    /// Describes AD structures: the type and content of each. Malformed parts are kept as bytes.
    static func advertisingData(_ data: RawSpan) -> Value {
        var structures: [Value] = []
        var iterator = ADStructureIterator(data)
        var position = 0
        while true {
            do throws(PacketDecodingError) {
                guard let structure = try iterator.next() else { return .list(structures) }
                position += structure.data.byteCount + 2
                structures.append(.fields(describe(structure)))
            } catch {
                structures.append(.fields(describe(cut: data.extracting(droppingFirst: position), error)))
                return .list(structures)
            }
        }
    }

    private enum Names {
        static let type = FieldName("Type")
        static let malformed = FieldName("Malformed")
        static let flags = FieldName("Flags")
        static let uuids = FieldName("UUIDs")
        static let uuid = FieldName("UUID")
        static let name = FieldName("Name")
        static let power = FieldName("Power")
        static let minimum = FieldName("Interval Min")
        static let maximum = FieldName("Interval Max")
        static let addresses = FieldName("Addresses")
        static let address = FieldName("Address")
        static let addressType = FieldName("Address Type")
        static let appearance = FieldName("Appearance")
        static let interval = FieldName("Interval")
        static let role = FieldName("Role")
        static let uri = FieldName("URI")
        static let company = FieldName("Company")
        static let text = FieldName("Text")
    }

    /// Describes a structure that extends past the end of the data.
    private static func describe(cut structure: RawSpan, _ error: PacketDecodingError) -> [Field] {
        var fields: [Field] = []
        if let type = structure[checked: 1] {
            fields.append(Field(Names.type, .named(UInt64(type), NamedValues.adTypes[UInt64(type)])))
        }
        fields.append(Field(Names.malformed, .text("\(error)"), isInLine: true))
        fields.append(Field(.data, .octets([UInt8](copying: structure.extracting(droppingFirst: 2)))))
        return fields
    }

    private static func describe(_ structure: borrowing ADStructure) -> [Field] {
        let type = structure.type
        var fields = [Field(Names.type, .named(UInt64(type.rawValue), NamedValues.adTypes[UInt64(type.rawValue)]))]
        var reader = ByteReader(structure.data)
        do throws(PacketDecodingError) {
            try describe(type, &reader, into: &fields)
            if !reader.isAtEnd { fields.append(Field(.data, .octets([UInt8](copying: reader.readRemaining())))) }
        } catch {
            fields.append(Field(Names.malformed, .text("\(error)"), isInLine: true))
            fields.append(Field(.data, .octets([UInt8](copying: structure.data))))
        }
        return fields
    }

    private static func describe(
        _ type: ADType,
        _ reader: inout ByteReader,
        into fields: inout [Field]
    ) throws(PacketDecodingError) {
        switch type {
        case .flags:
            guard !reader.isAtEnd else { return }
            fields.append(Field(Names.flags, .flags(UInt64(try reader.readUInt8()), .advertisingFlags)))
        case .incompleteServiceUUIDs16, .completeServiceUUIDs16, .solicitedServiceUUIDs16:
            try describeList(length: 2, &reader, into: &fields)
        case .incompleteServiceUUIDs32, .completeServiceUUIDs32, .solicitedServiceUUIDs32:
            try describeList(length: 4, &reader, into: &fields)
        case .incompleteServiceUUIDs128, .completeServiceUUIDs128, .solicitedServiceUUIDs128:
            try describeList(length: 16, &reader, into: &fields)
        case .serviceData16: try describeServiceData(length: 2, &reader, into: &fields)
        case .serviceData32: try describeServiceData(length: 4, &reader, into: &fields)
        case .serviceData128: try describeServiceData(length: 16, &reader, into: &fields)
        case .shortenedLocalName, .completeLocalName:
            let name = String(decoding: [UInt8](copying: reader.readRemaining()), as: UTF8.self)
            fields.append(Field(Names.name, .text(name), isInLine: true))
        case .uri:
            let text = String(decoding: [UInt8](copying: reader.readRemaining()), as: UTF8.self)
            fields.append(Field(Names.uri, .text(text)))
        case ADType(rawValue: 0x30):
            let text = String(decoding: [UInt8](copying: reader.readRemaining()), as: UTF8.self)
            fields.append(Field(Names.text, .text(text)))
        case .txPowerLevel:
            fields.append(Field(Names.power, .measure(Int64(try reader.readInt8()), .decibelMilliwatts)))
        case .peripheralConnectionIntervalRange:
            let unit = Unit.time(microseconds: 1250)
            fields.append(Field(Names.minimum, .measure(Int64(try reader.readUInt16()), unit)))
            fields.append(Field(Names.maximum, .measure(Int64(try reader.readUInt16()), unit)))
        case .publicTargetAddress, .randomTargetAddress:
            var addresses: [Value] = []
            while !reader.isAtEnd { addresses.append(.address(try reader.readUInt48())) }
            fields.append(Field(Names.addresses, .list(addresses)))
        case ADType(rawValue: 0x1B):
            fields.append(Field(Names.address, .address(try reader.readUInt48())))
            let addressType = UInt64(try reader.readUInt8() & 1)
            fields.append(Field(Names.addressType, .named(addressType, addressType == 0 ? "public" : "random")))
        case .appearance:
            let value = try reader.readUInt16()
            fields.append(Field(Names.appearance, .named(UInt64(value), Appearance(rawValue: value).name)))
        case .advertisingInterval, .advertisingIntervalLong:
            let length = reader.remaining
            guard (2...4).contains(length) else { throw .invalidLength(length, field: "advertising interval") }
            let interval = try reader.readUnsigned(octets: length)
            fields.append(Field(Names.interval, .measure(Int64(interval), .time(microseconds: 625))))
        case .leRole:
            let role = UInt64(try reader.readUInt8())
            fields.append(Field(Names.role, .named(role, NamedValues.leRoles[role])))
        case .manufacturerSpecificData:
            let company = try reader.readUInt16()
            fields.append(
                Field(Names.company, .named(UInt64(company), CompanyIdentifier(rawValue: company).name), isInLine: true)
            )
            fields.append(Field(.data, .octets([UInt8](copying: reader.readRemaining()))))
        default:
            break
        }
    }

    private static func describeList(
        length: Int,
        _ reader: inout ByteReader,
        into fields: inout [Field]
    ) throws(PacketDecodingError) {
        guard reader.remaining.isMultiple(of: length) else {
            throw .invalidLength(reader.remaining, field: "list of UUIDs")
        }
        var uuids: [Value] = []
        while !reader.isAtEnd { uuids.append(.uuid(try BluetoothUUID(decoding: reader.readBytes(count: length)))) }
        fields.append(Field(Names.uuids, .list(uuids), isInLine: true))
    }

    private static func describeServiceData(
        length: Int,
        _ reader: inout ByteReader,
        into fields: inout [Field]
    ) throws(PacketDecodingError) {
        let uuid = try BluetoothUUID(decoding: reader.readBytes(count: length))
        fields.append(Field(Names.uuid, .uuid(uuid), isInLine: true))
        fields.append(Field(.data, .octets([UInt8](copying: reader.readRemaining()))))
    }
}
