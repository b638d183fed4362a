import BluetoothTypes
import ByteCoding
import Capture

extension Layer {
    /// What a recorder says besides packets.
    init(note: CaptureNote, _ bytes: RawSpan) {
        switch note {
        case .monitor(let opcode):
            self.init(.note, Layer.title(opcode))
            add(opcode, bytes)
        case .packetLogger(let type):
            self.init(.note, "PacketLogger Record 0x" + hexadecimalText(UInt64(type.rawValue), digits: 2))
            fields.append(type.isText ? Layer.text(bytes) : Field(.data, .octets([UInt8](copying: bytes))))
        case .otherNetwork(let linkType):
            self.init(.note, "Packet of \(linkType)")
            fields.append(Field(.data, .octets([UInt8](copying: bytes))))
        }
    }

    private static func title(_ opcode: MonitorOpcode) -> String {
        switch opcode {
        case .newIndex: "New Index"
        case .deleteIndex: "Delete Index"
        case .openIndex: "Open Index"
        case .closeIndex: "Close Index"
        case .indexInformation: "Index Information"
        case .vendorDiagnostics: "Vendor Diagnostics"
        case .systemNote: "System Note"
        case .userLogging: "User Logging"
        case .controlOpen: "Control Open"
        case .controlClose: "Control Close"
        case .controlCommand: "Control Command"
        case .controlEvent: "Control Event"
        default: "Monitor Record \(opcode.rawValue)"
        }
    }

    private mutating func add(_ opcode: MonitorOpcode, _ bytes: RawSpan) {
        var reader = ByteReader(bytes)
        switch opcode {
        case .newIndex:
            guard let index = try? MonitorNewIndex(decoding: bytes) else { break }
            fields.append(Field(FieldName("Name"), .text(Layer.string(index.name)), isInLine: true))
            fields.append(Field(FieldName("Address"), .address(index.address), isInLine: true))
            fields.append(Field(FieldName("Bus"), .number(Int64(index.bus))))
            fields.append(Field(FieldName("Controller Type"), .number(Int64(index.type))))
            return
        case .indexInformation:
            guard let address = try? reader.readUInt48(), let company = try? reader.readUInt16() else { break }
            fields.append(Field(FieldName("Address"), .address(address), isInLine: true))
            let name = CompanyIdentifier(rawValue: company).name
            fields.append(Field(FieldName("Manufacturer"), .named(UInt64(company), name), isInLine: true))
            return
        case .systemNote:
            fields.append(Layer.text(bytes))
            return
        case .userLogging:
            guard let priority = try? reader.readUInt8(), let length = try? reader.readUInt8(),
                let program = try? reader.readBytes(count: Int(length))
            else { break }
            fields.append(Field(FieldName("Priority"), .number(Int64(priority))))
            fields.append(Field(FieldName("Program"), .text(Layer.string(program)), isInLine: true))
            fields.append(Layer.text(reader.readRemaining()))
            return
        default: break
        }
        if !bytes.isEmpty { fields.append(Field(.data, .octets([UInt8](copying: bytes)))) }
    }

    private static func text(_ bytes: RawSpan) -> Field {
        Field(FieldName("Text"), .text(string(bytes)), isInLine: true)
    }

    /// UTF-8 up to a zero.
    private static func string(_ bytes: RawSpan) -> String {
        String(decoding: [UInt8](copying: bytes).prefix { $0 != 0 }, as: UTF8.self)
    }
}
