import BLEByteCoding

/// One record of a capture of any format, borrowed from its reader.
public struct CaptureRecord: ~Escapable {
    /// The packet or note.
    public let content: CapturedContent
    /// The record's number in the file, from 1.
    public let number: UInt64
    /// The offset in the file, in bytes, at which the record starts.
    public let offset: UInt64
    /// The time at which the record was taken; nil if the format does not give it.
    public let time: CaptureTime?
    /// The adapter of the record: the kernel's index in a recording of the monitor channel (0xFFFF for none), the
    /// interface's number within its section in pcapng, otherwise zero.
    public let adapterIndex: UInt16
    /// The section of a pcapng file, from zero. Concatenated files are sections with their own interfaces. Zero in
    /// other formats.
    public let section: UInt64
    /// The number of bytes that the recorder cut off the packet's end; zero if it is complete.
    public let cutLength: UInt32
    /// The number of packets that the recorder has lost since it began, if it reports that.
    public let cumulativeDrops: UInt64

    @_lifetime(copy bytes)
    init(_ layout: RecordLayout, payload bytes: RawSpan, number: UInt64, offset: UInt64) {
        content =
            switch layout.meaning {
            case .packet(let kind, let direction): .packet(kind, direction, bytes: bytes)
            case .note(let note): .note(note, bytes: bytes)
            case .malformed(let error, let direction): .malformed(error, direction, bytes: bytes)
            }
        self.number = number
        self.offset = offset
        time = layout.time
        adapterIndex = layout.adapterIndex
        section = layout.section
        cutLength = layout.cutLength
        cumulativeDrops = layout.cumulativeDrops
    }
}

/// The layout of a record's parts, relative to its start, and their meaning.
struct RecordLayout {
    enum Meaning {
        case packet(CapturedPacketKind, CaptureDirection?)
        case note(CaptureNote)
        case malformed(PacketDecodingError, CaptureDirection?)
    }

    /// The length of the whole record, in bytes.
    var length: Int
    var meaning: Meaning
    /// The range of the packet without headers and indicator.
    var payload: Range<Int>
    var time: CaptureTime?
    var adapterIndex: UInt16 = 0
    var section: UInt64 = 0
    var cutLength: UInt32 = 0
    var cumulativeDrops: UInt64 = 0
}
