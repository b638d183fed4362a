import BLEByteCoding

/// The indicator before each packet on a UART and similar transports, known as H4 (Vol 4, Part A, 2).
public enum PacketType: UInt8, Sendable {
    /// A command, from the host to the controller.
    case command = 0x01
    /// ACL data, in either direction.
    case acl = 0x02
    /// Synchronous data (SCO and eSCO of BR/EDR), in either direction.
    case synchronous = 0x03
    /// An event, from the controller to the host.
    case event = 0x04
    /// Isochronous data, in either direction.
    case iso = 0x05

    /// The maximum length of a header of any type, in bytes.
    public static let maximumHeaderLength = 4

    /// The number of bytes before the payload, without the indicator itself.
    @inlinable
    public var headerLength: Int {
        switch self {
        case .command, .synchronous: 3
        case .acl, .iso: 4
        case .event: 2
        }
    }

    /// The number of bytes after the header, by its length field; nil while `header` is shorter than a header.
    ///
    /// - Parameter header: the part of the packet after its indicator that has arrived.
    @inlinable
    public func payloadLength(header: RawSpan) -> Int? {
        guard header.byteCount >= headerLength else { return nil }
        switch self {
        case .command, .synchronous:
            return header[checked: 2].map(Int.init)
        case .event:
            return header[checked: 1].map(Int.init)
        case .acl, .iso:
            guard let low = header[checked: 2], let high = header[checked: 3] else { return nil }
            let length = Int(low) | Int(high) << 8
            // The two bits above an ISO length are reserved (Vol 4, Part E, 5.4.5).
            return self == .iso ? length & 0x3FFF : length
        }
    }

    /// The total length of the packet at the start of a stream, with indicator and header; nil while too few bytes have
    /// arrived.
    ///
    /// - Throws: an error if the first byte is not an indicator. The stream has then lost its framing.
    @inlinable
    public static func packetLength(atStartOf stream: RawSpan) throws(PacketDecodingError) -> Int? {
        guard let indicator = stream[checked: 0] else { return nil }
        guard let type = PacketType(rawValue: indicator) else {
            throw .invalidValue(UInt64(indicator), field: "HCI packet indicator")
        }
        guard let payloadLength = type.payloadLength(header: stream.extracting(droppingFirst: 1)) else { return nil }
        return 1 + type.headerLength + payloadLength
    }
}
