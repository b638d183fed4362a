import BLEByteCoding
import BLECapture
import BluetoothTypes

private enum NoteNames {
    static let adapterName = FieldName("Adapter Name")
    static let address = FieldName("Address")
    static let bus = FieldName("Bus")
    static let controllerType = FieldName("Controller Type")
    static let manufacturer = FieldName("Manufacturer")
    static let priority = FieldName("Priority")
    static let program = FieldName("Program")
    static let text = FieldName("Text")
    static let cookie = FieldName("Cookie")
    static let channel = FieldName("Channel")
    static let version = FieldName("Version")
    static let flags = FieldName("Flags")
    /// The channels of HCI sockets that carry no packets, by the monitor's numbers.
    static let channels = NamedValues([0: "raw channel", 1: "user channel", 2: "management channel"])
}

extension Layer {
    /// Describes a note of the recorder.
    init(note: CaptureNote, _ bytes: RawSpan) {
        switch note {
        case .monitor(let opcode):
            self.init(.note, Layer.title(opcode))
            add(opcode, bytes)
        case .packetLogger(let type):
            self.init(.note, "PacketLogger Record 0x" + hexadecimalDigits(type.rawValue, count: 2))
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
            fields.append(Field(NoteNames.adapterName, .text(Layer.string(index.name)), isInLine: true))
            fields.append(Field(NoteNames.address, .address(index.address), isInLine: true))
            fields.append(Field(NoteNames.bus, .number(Int64(index.bus))))
            fields.append(Field(NoteNames.controllerType, .number(Int64(index.type))))
            return
        case .indexInformation:
            guard let address = try? reader.readUInt48(), let company = try? reader.readUInt16() else { break }
            fields.append(Field(NoteNames.address, .address(address), isInLine: true))
            let name = CompanyIdentifier(rawValue: company).name
            fields.append(Field(NoteNames.manufacturer, .named(UInt64(company), name), isInLine: true))
            return
        case .systemNote:
            fields.append(Layer.text(bytes))
            return
        case .controlOpen:
            guard addControl(&reader) else { break }
            return
        case .controlClose:
            guard let cookie = try? reader.readUInt32() else { break }
            fields.append(Field(NoteNames.cookie, .hexadecimal(UInt64(cookie), digits: 8), isInLine: true))
            return
        case .userLogging:
            guard let priority = try? reader.readUInt8(), let length = try? reader.readUInt8(),
                let program = try? reader.readBytes(count: Int(length))
            else { break }
            fields.append(Field(NoteNames.priority, .number(Int64(priority))))
            fields.append(Field(NoteNames.program, .text(Layer.string(program)), isInLine: true))
            fields.append(Layer.text(reader.readRemaining()))
            return
        default: break
        }
        if !bytes.isEmpty { fields.append(Field(.data, .octets([UInt8](copying: bytes)))) }
    }

    /// Adds the program and its channel. Returns false if the record does not have the kernel's format.
    private mutating func addControl(_ reader: inout ByteReader) -> Bool {
        guard let cookie = try? reader.readUInt32(), let channel = try? reader.readUInt16(),
            let version = try? reader.readBytes(count: 3), let flags = try? reader.readUInt32(),
            let length = try? reader.readUInt8(), let program = try? reader.readBytes(count: Int(length))
        else { return false }
        fields.append(Field(NoteNames.program, .text(Layer.string(program)), isInLine: true))
        fields.append(
            Field(NoteNames.channel, .named(UInt64(channel), NoteNames.channels[UInt64(channel)]), isInLine: true)
        )
        fields.append(Field(NoteNames.cookie, .hexadecimal(UInt64(cookie), digits: 8), isInLine: true))
        fields.append(Field(NoteNames.version, .octets([UInt8](copying: version))))
        fields.append(Field(NoteNames.flags, .hexadecimal(UInt64(flags), digits: 8)))
        return true
    }

    private static func text(_ bytes: RawSpan) -> Field {
        Field(NoteNames.text, .text(string(bytes)), isInLine: true)
    }

    /// Decodes UTF-8 up to a zero.
    private static func string(_ bytes: RawSpan) -> String {
        String(decoding: [UInt8](copying: bytes).prefix { $0 != 0 }, as: UTF8.self)
    }
}
