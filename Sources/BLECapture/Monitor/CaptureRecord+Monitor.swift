import BLEByteCoding

extension CaptureRecord {
    /// Maximum length of a message of Linux's monitor channel, in bytes. The header has a length field of 16 bits.
    public static let maximumMonitorMessageLength = 6 + 0xFFFF

    /// Creates a record from a message of Linux's monitor channel: opcode, adapter and length, then the content (the
    /// kernel's `hci_mon.h`).
    ///
    /// - Parameters:
    ///   - number: the record's number, from 1.
    ///   - cumulativeDrops: the number of messages lost so far.
    @_lifetime(copy message)
    public init(monitorMessage message: RawSpan, number: UInt64, time: CaptureTime, cumulativeDrops: UInt64 = 0) {
        var layout = RecordLayout(
            length: message.byteCount,
            meaning: .note(.monitor(.systemNote)),
            payload: 0..<message.byteCount,
            time: time,
            cumulativeDrops: cumulativeDrops
        )
        var reader = ByteReader(message)
        do throws(PacketDecodingError) {
            let opcode = MonitorOpcode(rawValue: try reader.readUInt16())
            let adapterIndex = try reader.readUInt16()
            let length = Int(try reader.readUInt16())
            let start = reader.position
            try reader.skip(length)
            try reader.requireEnd()
            layout.meaning = opcode.meaning
            layout.payload = start..<reader.position
            layout.adapterIndex = adapterIndex
        } catch {
            layout.meaning = .malformed(error, nil)
        }
        self.init(layout, payload: message.extracting(layout.payload), number: number, offset: 0)
    }
}
