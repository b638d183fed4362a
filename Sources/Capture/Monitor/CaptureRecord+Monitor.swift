import ByteCoding

extension CaptureRecord {
    /// The longest message of Linux's monitor channel: its header says the length in 16 bits.
    public static let maximumMonitorMessageLength = 6 + 0xFFFF

    /// A message of Linux's monitor channel as the kernel gives it: opcode, adapter and length, then so many octets (the
    /// kernel's `hci_mon.h`).
    ///
    /// - Parameters:
    ///   - number: the record's, from 1.
    ///   - cumulativeDrops: how many messages have been lost so far.
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
