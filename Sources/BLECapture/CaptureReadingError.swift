import BLEByteCoding

/// The reason why a file cannot be read as a capture, or not any further.
public enum CaptureReadingError: Error, Sendable, Equatable {
    /// The file is empty.
    case empty
    /// The file is text.
    case text
    /// The file is compressed in this format.
    case compressed(CompressionFormat)
    /// The file begins with these four bytes, which begin no supported format. Missing bytes are zero.
    case unknownFormat(firstBytes: UInt32)
    /// The file is a btsnoop file, but the encapsulation of its packets is not supported.
    case unsupportedDataLink(BTSnoopHeader.DataLink)
    /// The file is a pcap or pcapng file, but not of Bluetooth HCI. A pcapng file may describe interfaces anywhere. So
    /// the error follows its last record, and has the link type of its first interface.
    case unsupportedLinkType(CaptureLinkType)
    /// The records before this damage were read. No record after it can be read.
    case damaged(CaptureDamage)

    /// The compression format of a file that may contain a capture.
    public enum CompressionFormat: Sendable, Hashable {
        case gzip, zip, zstandard, xz
    }
}

/// The position and kind of damage in a capture.
public struct CaptureDamage: Error, Sendable, Equatable {
    /// The offset in the file, in bytes, of the damaged header, record or block.
    public var offset: UInt64
    /// The kind of damage; ``PacketDecodingError/truncated(needed:available:)`` if the file ends within the element, as
    /// after its recorder was killed.
    public var reason: PacketDecodingError

    public init(offset: UInt64, reason: PacketDecodingError) {
        self.offset = offset
        self.reason = reason
    }
}

extension CaptureDamage: CustomStringConvertible {
    public var description: String { "damaged at byte \(offset): \(reason)" }
}

extension CaptureReadingError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .empty: "an empty file, not a capture"
        case .text: "text, not a capture (btsnoop, pcap, pcapng or PacketLogger)"
        case .compressed(let format): "compressed with \(format); decompress it first"
        case .unknownFormat(let octets):
            "not a capture (btsnoop, pcap, pcapng or PacketLogger): it begins with 0x"
                + String(octets, radix: 16, uppercase: true)
        case .unsupportedDataLink(let dataLink): "a btsnoop file of \(dataLink), which cannot be read"
        case .unsupportedLinkType(let linkType): "a capture of \(linkType), not of Bluetooth's HCI"
        case .damaged(let damage): damage.description
        }
    }
}

extension CaptureReadingError.CompressionFormat: CustomStringConvertible {
    public var description: String {
        switch self {
        case .gzip: "gzip"
        case .zip: "zip"
        case .zstandard: "zstd"
        case .xz: "xz"
        }
    }
}
