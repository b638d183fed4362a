import ByteCoding

/// What a server has received and spent since its process began.
struct ThroughputReport: Equatable, Sendable {
    /// How often the sink was written.
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

    /// How often the sink was written between two reports.
    func writes(since earlier: ThroughputReport) -> Int {
        writes > earlier.writes ? Int(clamping: writes - earlier.writes) : 0
    }

    func encode(into buffer: inout PacketBuffer) {
        buffer.append(writes, usage.processorMicroseconds, usage.contextSwitches, usage.residentKibibytes)
    }
}
