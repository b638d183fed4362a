import BLEByteCoding

/// Reads a capture of any format incrementally, one record at a time.
///
/// The caller appends bytes with ``append(_:)``, in pieces of any size, and calls ``finish()`` after the last. In
/// between, ``advance()`` moves to the next record, and ``record`` is the current record:
///
///     reading: while true {
///         switch try reader.advance() {
///         case .record: print(reader.record)
///         case .needsBytes: reader.append(more)
///         case .end: break reading
///         }
///     }
///
/// The reader detects the format from the first bytes. It keeps only the bytes appended since the last record, and the
/// record itself. If the caller appends bytes only on request, the reader needs the same memory for a file of any size,
/// valid or damaged.
public struct CaptureReader: Sendable {
    /// Maximum length of a packet with the headers of its encapsulation, in bytes. A longer packet counts as damage.
    /// The longest HCI packet has about a quarter of it.
    public static let maximumPacketLength: UInt32 = 262_144

    /// The result of ``advance()``.
    public enum Progress: Hashable, Sendable {
        /// A record is available as ``CaptureReader/record``.
        case record
        /// The appended bytes are used up. Append more, or call ``CaptureReader/finish()``.
        case needsBytes
        /// The end of the capture.
        case end
    }

    /// The capture's format; nil until it is detected.
    public private(set) var format: CaptureFormat?
    /// The offset in the file of the current record, or of the next if there is no current record.
    public private(set) var offset: UInt64 = 0
    /// The number of records read.
    public private(set) var recordCount: UInt64 = 0

    private var storage: [UInt8] = []
    /// The index of the first unread byte in `storage`.
    private var start = 0
    private var isFinished = false
    private var current: RecordLayout?
    private var bytesToSkip: UInt64 = 0
    private var blocks = PCAPNGBlocks()
    private var failure: CaptureReadingError?

    public init() {}

    /// Appends the next bytes of the file.
    public mutating func append(_ bytes: RawSpan) {
        if start == storage.count {
            storage.removeAll(keepingCapacity: true)
            start = 0
        } else if start > 0, storage.count + bytes.byteCount > storage.capacity {
            storage.removeSubrange(0..<start)
            start = 0
        }
        unsafe bytes.withUnsafeBytes { unsafe storage.append(contentsOf: $0) }
    }

    /// Declares that all bytes of the file have been appended.
    public mutating func finish() {
        isFinished = true
    }

    /// Moves to the next record.
    ///
    /// - Throws: ``CaptureReadingError`` if the file is not a capture or is damaged. Earlier records are valid. Every
    ///   further call throws the same error.
    public mutating func advance() throws(CaptureReadingError) -> Progress {
        if let failure { throw failure }
        if let current { consume(current.length) }
        current = nil
        do throws(CaptureReadingError) {
            return try search()
        } catch {
            failure = error
            throw error
        }
    }

    /// The current record; nil before the first, and if the last ``advance()`` did not return a record.
    public var record: CaptureRecord? {
        @_lifetime(borrow self)
        get {
            guard let current else { return nil }
            let bytes = storage.rawSpan.extracting(droppingFirst: start).extracting(current.payload)
            return CaptureRecord(current, payload: bytes, number: recordCount, offset: offset)
        }
    }

    /// The number of bytes kept.
    package var keptLength: Int { storage.count }

    private var available: Int { storage.count - start }

    private mutating func consume(_ count: Int) {
        start += count
        offset += UInt64(count)
    }

    private mutating func search() throws(CaptureReadingError) -> Progress {
        while true {
            if bytesToSkip > 0 {
                let count = Int(min(UInt64(available), bytesToSkip))
                consume(count)
                bytesToSkip -= UInt64(count)
                guard bytesToSkip == 0 else {
                    return try unmet(.truncated(needed: Int(bytesToSkip), available: 0))
                }
            }
            guard let format else {
                guard try identify() else { return .needsBytes }
                continue
            }
            if available == 0, !blocks.isWithinBlock {
                guard isFinished else { return .needsBytes }
                if let linkType = blocks.unsupportedLinkType { throw .unsupportedLinkType(linkType) }
                return .end
            }
            do throws(PacketDecodingError) {
                switch try parse(format) {
                case .record(let layout):
                    current = layout
                    recordCount += 1
                    return .record
                case .none(let length): bytesToSkip = length
                }
            } catch {
                return try unmet(error)
            }
        }
    }

    /// Handles a record that cannot be decoded: requests more bytes if the record may only be incomplete, otherwise
    /// throws.
    private func unmet(_ error: PacketDecodingError) throws(CaptureReadingError) -> Progress {
        if case .truncated = error, !isFinished { return .needsBytes }
        throw .damaged(CaptureDamage(offset: blocks.blockOffset ?? offset, reason: error))
    }

    /// Detects the format. Returns false if that needs more bytes.
    private mutating func identify() throws(CaptureReadingError) -> Bool {
        switch CaptureFormatDetection(storage.rawSpan.extracting(droppingFirst: start), isWhole: isFinished) {
        case .format(let format, let headerLength):
            self.format = format
            consume(headerLength)
            return true
        case .needsBytes: return false
        case .none(let error): throw error
        }
    }

    /// Parses the element at `start`.
    ///
    /// - Throws: ``PacketDecodingError/truncated(needed:available:)`` if the element is incomplete.
    private mutating func parse(_ format: CaptureFormat) throws(PacketDecodingError) -> CaptureElement {
        let storage = storage
        let bytes = storage.rawSpan.extracting(droppingFirst: start)
        return switch format {
        case .btsnoop(let dataLink): .record(try BTSnoopRecord.layout(bytes, in: dataLink))
        case .pcap(let header): .record(try PCAPRecord.layout(bytes, in: header))
        case .pcapng: try blocks.next(bytes, at: offset)
        case .packetLogger(let order): .record(try PacketLoggerRecord.layout(bytes, order))
        }
    }
}

/// An element of a capture.
enum CaptureElement {
    case record(RecordLayout)
    /// An element without a record, with its length in bytes.
    case none(length: UInt64)
}
