import BLEByteCoding
import BluetoothTypes

extension ParameterLayout {
    /// Reads parameters up to the first error. Returns an error if parameters are missing or bytes remain.
    func read(
        _ reader: inout ByteReader,
        into fields: inout [Field],
        requiringEnd: Bool = true
    ) -> PacketDecodingError? {
        var count: Int?
        if let error = read(&reader, into: &fields, count: &count) { return error }
        guard requiringEnd, !reader.isAtEnd else { return nil }
        let remaining = reader.remaining
        fields.append(Field(.excess, .octets([UInt8](copying: reader.readRemaining()))))
        return .trailingBytes(count: remaining)
    }

    /// Reads the parameters of an event that reports a failure, or the return parameters of a command that failed.
    ///
    /// Lists are not valid then, so the bytes in their place are not an error.
    func readFailure(_ reader: inout ByteReader, into fields: inout [Field]) -> PacketDecodingError? {
        guard let beforeLists else { return read(&reader, into: &fields) }
        if let error = beforeLists.read(&reader, into: &fields, requiringEnd: false) { return error }
        if !reader.isAtEnd { fields.append(Field(.excess, .octets([UInt8](copying: reader.readRemaining())))) }
        return nil
    }

    /// Whether the parameters begin with a status other than success.
    func isFailure(_ parameters: RawSpan) -> Bool {
        self.parameters.first?.name.key == HCINames.status.key && parameters[checked: 0] != 0
    }

    private func read(
        _ reader: inout ByteReader,
        into fields: inout [Field],
        count: inout Int?
    ) -> PacketDecodingError? {
        fields.reserveCapacity(fields.count + parameters.count)
        for parameter in parameters {
            switch parameter.kind {
            case .group(let layout):
                if let error = layout.readGroups(&reader, parameter, into: &fields, count: count) { return error }
                count = nil
            case .optional(let layout):
                if reader.isAtEnd { continue }
                if let error = layout.read(&reader, into: &fields, count: &count) { return error }
            case .handle:
                do throws(PacketDecodingError) {
                    let word = try reader.readUInt16()
                    fields.append(Field(parameter.name, .handle(word), isInLine: parameter.isInLine))
                    if let reserved = Field.reservedBits(word >> 12, reservedBitsName(of: parameter)) {
                        fields.append(reserved)
                    }
                } catch {
                    return error
                }
            default:
                do throws(PacketDecodingError) {
                    let value = try parameter.read(&reader, count: &count)
                    fields.append(Field(parameter.name, value, isInLine: parameter.isInLine))
                } catch {
                    return error
                }
            }
        }
        return nil
    }

    /// Returns the name of the reserved bits of a handle. If there are several handles, each has a name of its own.
    private func reservedBitsName(of handle: Parameter) -> FieldName {
        let count = parameters.count { if case .handle = $0.kind { true } else { false } }
        return count == 1 ? .reservedBits : FieldName("\(handle.name.text) Reserved Bits")
    }

    private func readGroups(
        _ reader: inout ByteReader,
        _ parameter: Parameter,
        into fields: inout [Field],
        count: Int?
    ) -> PacketDecodingError? {
        var groups: [Value] = []
        var failure: PacketDecodingError?
        while failure == nil, count.map({ groups.count < $0 }) ?? !reader.isAtEnd {
            var group: [Field] = []
            var inner: Int?
            failure = read(&reader, into: &group, count: &inner)
            groups.append(.fields(group))
        }
        fields.append(Field(parameter.name, .list(groups), isInLine: parameter.isInLine))
        return failure
    }
}

extension FieldName {
    /// Bytes after the last parameter.
    static let excess = FieldName("Excess")
    /// Parameters of a packet whose layout is unknown.
    static let parameters = FieldName("Parameters")
    static let data = FieldName("Data")
    /// Reserved bits that are not zero.
    static let reservedBits = FieldName("Reserved Bits")
}

extension Field {
    /// Returns a field for the reserved bits of the preceding field, whose value does not show them. Returns nil if
    /// they are zero, as required.
    static func reservedBits(_ bits: UInt16, _ name: @autoclosure () -> FieldName = .reservedBits) -> Field? {
        bits == 0 ? nil : Field(name(), .hexadecimal(UInt64(bits), digits: 1), isInLine: true)
    }
}

extension Value {
    /// A connection handle: the low 12 bits (Vol 4, Part E, 5.3.1).
    static func handle(_ word: UInt16) -> Value { .hexadecimal(UInt64(word & 0x0FFF), digits: 4) }
}

extension ParameterLayout.Parameter {
    fileprivate func read(_ reader: inout ByteReader, count: inout Int?) throws(PacketDecodingError) -> Value {
        switch kind {
        case .unsigned(let octets): return .number(Int64(bitPattern: try reader.readUnsigned(octets: octets)))
        case .signed(let octets):
            let unused = 64 - octets * 8
            return .number(Int64(bitPattern: try reader.readUnsigned(octets: octets) << unused) >> unused)
        case .time(let octets, let unit):
            return .measure(Int64(bitPattern: try reader.readUnsigned(octets: octets)), unit)
        case .power: return .measure(Int64(try reader.readInt8()), .decibelMilliwatts)
        case .hexadecimal(let octets):
            return .hexadecimal(try reader.readUnsigned(octets: octets), digits: UInt8(octets * 2))
        case .wide: return .wide(try reader.readUInt128())
        case .handle: return .handle(try reader.readUInt16())
        case .address: return .address(try reader.readUInt48())
        case .uuid: return .uuid(try BluetoothUUID(decoding: reader.readRemaining()))
        case .enumeration(let octets, let names):
            let value = try reader.readUnsigned(octets: octets)
            return .named(value, names[value])
        case .flags(let octets, let names):
            return .flags(try reader.readUnsigned(octets: octets), names, digits: UInt8(octets * 2))
        case .octets(let count): return .octets([UInt8](copying: try reader.readBytes(count: count)))
        case .rest: return .octets([UInt8](copying: reader.readRemaining()))
        case .text(let length):
            let bytes =
                length == nil ? reader.readRemaining() : try reader.readBytes(count: min(length ?? 0, reader.remaining))
            return .text(String(decoding: [UInt8](copying: bytes).prefix { $0 != 0 }, as: UTF8.self))
        case .advertisingData(let length): return try reader.readAdvertisingData(length)
        case .countedBytes:
            let length = Int(try reader.readUInt8())
            return .octets([UInt8](copying: try reader.readBytes(count: length)))
        case .count:
            let value = try reader.readUInt8()
            count = Int(value)
            return .number(Int64(value))
        case .phys:
            let value = try reader.readUInt8()
            count = (value & 0b111).nonzeroBitCount
            return .flags(UInt64(value), .physSet)
        case .group, .optional: return .list([])
        }
    }
}

extension ByteReader {
    /// Reads a number of up to eight bytes, least significant first.
    mutating func readUnsigned(octets: Int) throws(PacketDecodingError) -> UInt64 {
        switch octets {
        case 1: return UInt64(try readUInt8())
        case 2: return UInt64(try readUInt16())
        default:
            let bytes = try readBytes(count: octets)
            var value: UInt64 = 0
            for index in (0..<octets).reversed() { value = value << 8 | UInt64(bytes[checked: index] ?? 0) }
            return value
        }
    }

    fileprivate mutating func readAdvertisingData(
        _ length: ParameterLayout.AdvertisingDataLength
    ) throws(PacketDecodingError) -> Value {
        switch length {
        case .rest: return .advertisingData(readRemaining())
        case .counted(let room):
            let count = Int(try readUInt8())
            guard let room else { return .advertisingData(try readBytes(count: count)) }
            guard count <= room else { throw .invalidLength(count, field: "advertising data") }
            return .advertisingData(try readBytes(count: room).extracting(first: count))
        }
    }
}
