import BLEATT
import BLEByteCoding
import BluetoothTypes

/// The field names of ATT PDUs.
enum AttributeNames {
    static let opcode = FieldName("Opcode")
    static let handle = FieldName("Handle")
    static let starting = FieldName("Starting Handle")
    static let ending = FieldName("Ending Handle")
    static let end = FieldName("Group End Handle")
    static let uuid = FieldName("UUID")
    /// The service that contains an attribute.
    static let service = FieldName("Service")
    static let declaredService = FieldName("Declared Service")
    static let includedService = FieldName("Included Service")
    static let characteristic = FieldName("Characteristic")
    static let type = FieldName("Attribute Type")
    static let value = FieldName("Value")
    static let offset = FieldName("Offset")
    static let mtu = FieldName("MTU")
    static let attributes = FieldName("Attributes")
    static let request = FieldName("Request Opcode")
    static let error = FieldName("Error Code")
    static let flags = FieldName("Flags")
    static let format = FieldName("Format")
    static let length = FieldName("Length")
    static let properties = FieldName("Properties")
    static let valueHandle = FieldName("Value Handle")
    static let configuration = FieldName("Configuration")
    static let signature = FieldName("Signature")
    static let counter = FieldName("Sign Counter")
}

extension AttributeReading {
    mutating func addRange(_ range: HandleRange) {
        add(AttributeNames.starting, .hexadecimal(UInt64(range.start.rawValue), digits: 4), isInLine: true)
        add(AttributeNames.ending, .hexadecimal(UInt64(range.end.rawValue), digits: 4), isInLine: true)
    }

    mutating func addAttributes(_ handles: [UInt16], in database: ObservedDatabase) {
        let list = handles.map { Value.fields(attribute($0, in: database)) }
        add(AttributeNames.attributes, .list(list), isInLine: true)
    }

    mutating func addValue(_ value: [UInt8], type: BluetoothUUID?) {
        guard isDescribed else { return }
        switch type {
        case .primaryService?, .secondaryService?, .characteristic?, .include?, .clientCharacteristicConfiguration?:
            fields += interpretation(value, type: type)
        default: fields.append(Field(AttributeNames.value, .octets(value), isInLine: true))
        }
    }

    /// Describes an attribute by its handle and by its type, if known.
    func attribute(_ handle: UInt16, in database: ObservedDatabase) -> [Field] {
        var fields: [Field] = []
        // An attribute's own fields, and mostly a value after them.
        fields.reserveCapacity(6)
        append(handle, in: database, to: &fields)
        return fields
    }

    /// Adds the attribute of the PDU.
    mutating func addAttribute(_ handle: UInt16, in database: ObservedDatabase) {
        guard isDescribed else { return }
        append(handle, in: database, to: &fields)
    }

    private func append(_ handle: UInt16, in database: ObservedDatabase, to fields: inout [Field]) {
        fields.append(Field(AttributeNames.handle, .hexadecimal(UInt64(handle), digits: 4), isInLine: true))
        if let attribute = database[handle] {
            fields.append(Field(AttributeNames.uuid, .uuid(attribute.type), isInLine: true))
            if let characteristic = attribute.characteristic {
                fields.append(Field(AttributeNames.characteristic, .uuid(characteristic), isInLine: true))
            }
        }
        if let service = database.service(of: handle) { fields.append(Field(AttributeNames.service, .uuid(service))) }
    }

    /// Describes a value, with its content if the type is one of the GATT declarations or the CCCD.
    func interpretation(_ value: [UInt8], type: BluetoothUUID?) -> [Field] {
        var fields = [Field(AttributeNames.value, .octets(value), isInLine: true)]
        var reader = ByteReader(value.rawSpan)
        switch type {
        case .primaryService?, .secondaryService?:
            if let uuid = try? BluetoothUUID(decoding: value.rawSpan) {
                fields[0] = Field(AttributeNames.value, .octets(value))
                fields.append(Field(AttributeNames.declaredService, .uuid(uuid), isInLine: true))
            }
        case .characteristic?:
            guard let properties = try? reader.readUInt8(), let handle = try? reader.readUInt16(),
                let uuid = try? BluetoothUUID(decoding: reader.readRemaining())
            else { break }
            fields[0] = Field(AttributeNames.value, .octets(value))
            fields.append(Field(AttributeNames.properties, .flags(UInt64(properties), .characteristicProperties)))
            fields.append(Field(AttributeNames.valueHandle, .hexadecimal(UInt64(handle), digits: 4), isInLine: true))
            fields.append(Field(AttributeNames.characteristic, .uuid(uuid), isInLine: true))
        case .include?:
            guard let handle = try? reader.readUInt16(), let end = try? reader.readUInt16() else { break }
            fields.append(Field(AttributeNames.starting, .hexadecimal(UInt64(handle), digits: 4), isInLine: true))
            fields.append(Field(AttributeNames.ending, .hexadecimal(UInt64(end), digits: 4), isInLine: true))
            if let uuid = try? BluetoothUUID(decoding: reader.readRemaining()) {
                fields.append(Field(AttributeNames.includedService, .uuid(uuid), isInLine: true))
            }
        case .clientCharacteristicConfiguration?:
            guard value.count == 2, let bits = try? reader.readUInt16() else { break }
            fields[0] = Field(AttributeNames.value, .octets(value))
            fields.append(
                Field(AttributeNames.configuration, .flags(UInt64(bits), .clientConfiguration), isInLine: true)
            )
        default: break
        }
        return fields
    }
}
