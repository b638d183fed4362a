import BLEByteCoding

/// The values received and the resources used by a server since its process began.
struct ThroughputReport: Equatable, Sendable {
    /// Number of writes to the sink.
    var writes: UInt64
    var usage: ProcessUsage

    init(writes: UInt64, usage: ProcessUsage) {
        self.writes = writes
        self.usage = usage
    }

    init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        writes = try reader.readUInt64()
        usage = ProcessUsage(
            processorMicroseconds: try reader.readUInt64(),
            contextSwitches: try reader.readUInt64(),
            residentKibibytes: try reader.readUInt64()
        )
        try reader.requireEnd()
    }

    /// Returns the number of writes to the sink between two reports.
    func writes(since earlier: ThroughputReport) -> Int {
        writes > earlier.writes ? Int(clamping: writes - earlier.writes) : 0
    }

    func encode(into buffer: inout PacketBuffer) {
        buffer.append(writes, usage.processorMicroseconds, usage.contextSwitches, usage.residentKibibytes)
    }
}
