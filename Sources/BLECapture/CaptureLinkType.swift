import BLEByteCoding

/// The encapsulation of packets in a pcap or pcapng file. The values are those of the registry of link-layer header
/// types.
public struct CaptureLinkType: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16

    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// HCI packets with their H4 indicator. Only pcapng's flags give the direction of data.
    public static let hciH4 = CaptureLinkType(rawValue: 187)
    /// HCI packets with their H4 indicator, behind four bytes that give the direction.
    public static let hciH4WithDirection = CaptureLinkType(rawValue: 201)
    /// Packets and notes of Linux's monitor channel: adapter and opcode, then the packet.
    public static let linuxMonitor = CaptureLinkType(rawValue: 254)

    /// Whether records of this type can be read.
    public var isSupported: Bool {
        switch self {
        case .hciH4, .hciH4WithDirection, .linuxMonitor: true
        default: false
        }
    }

    /// Returns the meaning of `packet`, the length of its headers, and the adapter if the headers name it.
    ///
    /// - Parameter direction: the direction, if the record's header gives it.
    func parse(_ packet: RawSpan, direction: CaptureDirection?) -> LinkContent {
        var reader = ByteReader(packet)
        var direction = direction
        do throws(PacketDecodingError) {
            switch self {
            case .hciH4: break
            case .hciH4WithDirection:
                let number = try reader.readUInt32().byteSwapped
                direction = number & 1 == 0 ? .hostToController : .controllerToHost
            case .linuxMonitor:
                let adapter = try reader.readUInt16().byteSwapped
                let opcode = MonitorOpcode(rawValue: try reader.readUInt16().byteSwapped)
                return LinkContent(meaning: opcode.meaning, headerLength: reader.position, adapterIndex: adapter)
            default: return LinkContent(meaning: .note(.otherNetwork(self)), headerLength: 0)
            }
        } catch {
            return LinkContent(meaning: .malformed(error, direction), headerLength: 0)
        }
        let headerLength = reader.position
        do throws(PacketDecodingError) {
            let kind = try CapturedPacketKind(indicator: reader.readUInt8())
            return LinkContent(meaning: .packet(kind, direction ?? kind.onlyDirection), headerLength: headerLength + 1)
        } catch {
            return LinkContent(meaning: .malformed(error, direction), headerLength: headerLength)
        }
    }
}

/// The meaning of a record's packet, by its link type.
struct LinkContent {
    var meaning: RecordLayout.Meaning
    /// The number of bytes before the packet itself.
    var headerLength: Int
    var adapterIndex: UInt16?
}

extension CapturedPacketKind {
    init(indicator: UInt8) throws(PacketDecodingError) {
        guard let kind = CapturedPacketKind(rawValue: indicator) else {
            throw .invalidValue(UInt64(indicator), field: "HCI packet indicator")
        }
        self = kind
    }
}

extension CaptureLinkType: CustomStringConvertible {
    public var description: String {
        switch self {
        case .hciH4: "HCI H4"
        case .hciH4WithDirection: "HCI H4 with direction"
        case .linuxMonitor: "Linux's Bluetooth monitor"
        case CaptureLinkType(rawValue: 1): "Ethernet"
        case CaptureLinkType(rawValue: 127), CaptureLinkType(rawValue: 105): "IEEE 802.11"
        case CaptureLinkType(rawValue: 189), CaptureLinkType(rawValue: 220): "USB"
        case CaptureLinkType(rawValue: 251), CaptureLinkType(rawValue: 256): "Bluetooth LE's link layer"
        case CaptureLinkType(rawValue: 255): "Bluetooth BR/EDR's baseband"
        case CaptureLinkType(rawValue: 272): "a Nordic sniffer for Bluetooth LE"
        default: "link type \(rawValue)"
        }
    }
}
