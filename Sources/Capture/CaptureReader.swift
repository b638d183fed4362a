import ByteCoding

/// Reads a capture of any format as its octets come, one record at a time.
///
/// Octets go in by ``append(_:)``, in pieces of any size, and ``finish()`` says that there are no more; between them
/// ``advance()`` goes from record to record, and ``record`` is where it stands:
///
///     reading: while true {
///         switch try reader.advance() {
///         case .record: print(reader.record)
///         case .needsBytes: reader.append(more)
///         case .end: break reading
///         }
///     }
///
/// No more is kept than the octets appended since the last record and the record itself: a reader that is fed only when
/// it asks needs the same memory for a file of any size, sound or damaged. What the format is shows in the first octets.
public struct CaptureReader: Sendable {
    /// The most octets that a packet may have with the headers of its encapsulation; a longer one is damage. The longest
    /// HCI packet has a quarter.
    public static let maximumPacketLength: UInt32 = 262_144

    /// What ``advance()`` has come to.
    public enum Progress: Hashable, Sendable {
        /// A record, to be had as ``CaptureReader/record``.
        case record
        /// The end of what was appended; more is needed, or ``CaptureReader/finish()``.
        case needsBytes
        /// The end of the capture.
        case end
    }

    /// The capture's format, once its first octets have been seen.
    public private(set) var format: CaptureFormat?
    /// Where in the file the next record starts, or the one that ``record`` is.
    public private(set) var offset: UInt64 = 0
    /// How many records there have been.
    public private(set) var recordCount: UInt64 = 0

    private var storage: [UInt8] = []
    /// Where in `storage` the octets are that have not been read.
    private var start = 0
    private var isFinished = false
    private var current: RecordLayout?
    private var octetsToSkip: UInt64 = 0
    private var blocks = PCAPNGBlocks()
    private var failure: CaptureReadingError?

    public init() {}

    /// Takes the next octets of the file.
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

    /// Says that all octets of the file have been appended.
    public mutating func finish() {
        isFinished = true
    }

    /// Goes to the next record.
    ///
    /// - Throws: where the file is no capture or damaged. The records before are good; every further call throws the same.
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

    /// The record that ``advance()`` has come to; nil before the first, and after one that came to none.
    public var record: CaptureRecord? {
        @_lifetime(borrow self)
        get {
            guard let current else { return nil }
            let bytes = storage.rawSpan.extracting(droppingFirst: start).extracting(current.payload)
            return CaptureRecord(current, payload: bytes, number: recordCount, offset: offset)
        }
    }

    /// How many octets are kept.
    package var keptLength: Int { storage.count }

    private var available: Int { storage.count - start }

    private mutating func consume(_ count: Int) {
        start += count
        offset += UInt64(count)
    }

    private mutating func search() throws(CaptureReadingError) -> Progress {
        while true {
            if octetsToSkip > 0 {
                let count = Int(min(UInt64(available), octetsToSkip))
                consume(count)
                octetsToSkip -= UInt64(count)
                guard octetsToSkip == 0 else {
                    return try unmet(.truncated(needed: Int(octetsToSkip), available: 0))
                }
            }
            guard let format else {
                guard try identify() else { return .needsBytes }
                continue
            }
            if available == 0, !blocks.isWithinBlock {
                return isFinished ? .end : .needsBytes
            }
            do throws(PacketDecodingError) {
                switch try parse(format) {
                case .record(let layout):
                    current = layout
                    recordCount += 1
                    return .record
                case .none(let length): octetsToSkip = length
                }
            } catch {
                return try unmet(error)
            }
        }
    }

    /// What to do about a record that cannot be read: wait, where it may still become whole.
    private func unmet(_ error: PacketDecodingError) throws(CaptureReadingError) -> Progress {
        if case .truncated = error, !isFinished { return .needsBytes }
        throw .damaged(CaptureDamage(offset: blocks.blockOffset ?? offset, reason: error))
    }

    /// Finds out the format; false where more octets are needed for that.
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

    /// Reads what stands at `start`.
    ///
    /// - Throws: ``PacketDecodingError/truncated(needed:available:)`` where it is not there as a whole.
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

/// What stands at a place in a capture.
enum CaptureElement {
    case record(RecordLayout)
    /// So many octets that hold no record.
    case none(length: UInt64)
}
