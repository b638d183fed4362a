import ByteCoding

/// One record of a capture of any format, borrowed from its reader.
public struct CaptureRecord: ~Escapable {
    /// The packet or note.
    public let content: CapturedContent
    /// The record's number in the file, from 1.
    public let number: UInt64
    /// Where in the file the record starts.
    public let offset: UInt64
    /// When it was taken; nil where the format does not tell.
    public let time: CaptureTime?
    /// Which adapter it belongs to: the kernel's index in a recording of the monitor channel (0xFFFF for none), the
    /// interface's number within its section in pcapng, else zero.
    public let adapterIndex: UInt16
    /// The section of a pcapng file, from zero: where files were strung together, each is one, with interfaces of its
    /// own. Zero in other formats.
    public let section: UInt64
    /// How many octets the recorder has cut off the packet's end; zero where it is whole.
    public let cutLength: UInt32
    /// How many packets the recorder has lost since it began, as far as it tells.
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

/// Where a record's parts lie, counted from its start, and what they are.
struct RecordLayout {
    enum Meaning {
        case packet(CapturedPacketKind, CaptureDirection?)
        case note(CaptureNote)
        case malformed(PacketDecodingError, CaptureDirection?)
    }

    /// The whole record's octets.
    var length: Int
    var meaning: Meaning
    /// The packet's octets, without headers and indicator.
    var payload: Range<Int>
    var time: CaptureTime?
    var adapterIndex: UInt16 = 0
    var section: UInt64 = 0
    var cutLength: UInt32 = 0
    var cumulativeDrops: UInt64 = 0
}
