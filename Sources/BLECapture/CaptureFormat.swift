import BLEByteCoding

/// The format of a capture.
public enum CaptureFormat: Hashable, Sendable {
    case btsnoop(BTSnoopHeader.DataLink)
    case pcap(PCAPHeader)
    case pcapng
    case packetLogger(ByteOrder)
}

/// The result of examining the first bytes of a file.
enum CaptureFormatDetection {
    case format(CaptureFormat, headerLength: Int)
    case needsBytes
    case none(CaptureReadingError)

    /// The number of bytes that suffice to identify every format.
    static let length = 24

    /// - Parameters:
    ///   - bytes: the first bytes of the file.
    ///   - isWhole: whether the file has no more bytes.
    init(_ bytes: RawSpan, isWhole: Bool) {
        guard isWhole || bytes.byteCount >= CaptureFormatDetection.length else {
            self = .needsBytes
            return
        }
        do throws(PacketDecodingError) {
            self =
                try CaptureFormatDetection.identify(bytes).map { .format($0.format, headerLength: $0.headerLength) }
                ?? .none(CaptureFormatDetection.describe(bytes))
        } catch {
            self = .none(.damaged(CaptureDamage(offset: 0, reason: error)))
            return
        }
        switch self {
        case .format(.btsnoop(let dataLink), _) where !dataLink.isSupported:
            self = .none(.unsupportedDataLink(dataLink))
        case .format(.pcap(let header), _) where !header.linkType.isSupported:
            self = .none(.unsupportedLinkType(header.linkType))
        default: break
        }
    }

    /// Identifies the format by its magic number. Returns nil if there is none.
    ///
    /// - Throws: ``PacketDecodingError`` if a valid header does not follow the magic number.
    private static func identify(
        _ bytes: RawSpan
    ) throws(PacketDecodingError) -> (format: CaptureFormat, headerLength: Int)? {
        if BTSnoopHeader.isAtStart(of: bytes) {
            return (.btsnoop(try BTSnoopHeader(decoding: bytes).dataLink), BTSnoopHeader.length)
        }
        if PCAPHeader.isAtStart(of: bytes) {
            return (.pcap(try PCAPHeader(decoding: bytes)), PCAPHeader.length)
        }
        if PCAPNGBlocks.isAtStart(of: bytes) { return (.pcapng, 0) }
        return PacketLoggerRecord.byteOrder(of: bytes).map { (.packetLogger($0), 0) }
    }

    /// Describes a file that is not a capture.
    private static func describe(_ bytes: RawSpan) -> CaptureReadingError {
        if bytes.isEmpty { return .empty }
        let first = (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(bytes[checked: $1] ?? 0) }
        switch first {
        case _ where first >> 16 == 0x1F8B: return .compressed(.gzip)
        case 0x504B_0304: return .compressed(.zip)
        case 0x28B5_2FFD: return .compressed(.zstandard)
        case 0xFD37_7A58: return .compressed(.xz)
        default: return isText(bytes) ? .text : .unknownFormat(firstBytes: first)
        }
    }

    /// Whether the first ``length`` bytes are all printable ASCII, white space, or bytes of other characters in UTF-8.
    private static func isText(_ bytes: RawSpan) -> Bool {
        for offset in 0..<min(bytes.byteCount, length) {
            switch bytes[checked: offset] ?? 0 {
            case 0x09, 0x0A, 0x0C, 0x0D, 0x20...0x7E, 0x80...0xF4: continue
            default: return false
            }
        }
        return true
    }
}
