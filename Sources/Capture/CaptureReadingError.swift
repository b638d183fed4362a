import ByteCoding

/// Why a file cannot be read as a capture, or no further.
public enum CaptureReadingError: Error, Sendable, Equatable {
    /// The file has no octet.
    case empty
    /// The file is text.
    case text
    /// The file is compressed by a program of this name.
    case compressed(CompressionFormat)
    /// The file begins with these four octets, as no capture does that can be read.
    case unknownFormat(firstOctets: UInt32)
    /// It is a btsnoop file, but packets lie in it in a way that cannot be read.
    case unsupportedDataLink(BTSnoopHeader.DataLink)
    /// It is a pcap file, but of another network than Bluetooth's HCI.
    case unsupportedLinkType(CaptureLinkType)
    /// All before was read; from here on nothing can be.
    case damaged(CaptureDamage)

    /// How a file was compressed that may hold a capture.
    public enum CompressionFormat: Sendable, Hashable {
        case gzip, zip, zstandard, xz
    }
}

/// Where a capture is damaged, and how.
public struct CaptureDamage: Error, Sendable, Equatable {
    /// The octet of the file at which the damaged header, record or block starts.
    public var offset: UInt64
    /// What is wrong there; ``PacketDecodingError/truncated(needed:available:)`` where the file ends within it, as that
    /// of a recorder does that was killed.
    public var reason: PacketDecodingError

    public init(offset: UInt64, reason: PacketDecodingError) {
        self.offset = offset
        self.reason = reason
    }
}

extension CaptureDamage: CustomStringConvertible {
    public var description: String { "damaged at octet \(offset): \(reason)" }
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
