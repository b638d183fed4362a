import BLEByteCoding

extension BTSnoopHeader.DataLink {
    /// Whether records of this data link can be read.
    public var isSupported: Bool {
        self == .hciUART || self == .hciUnencapsulated || self == .linuxMonitor
    }
}

extension BTSnoopHeader.DataLink: CustomStringConvertible {
    public var description: String {
        switch self {
        case .hciUnencapsulated: "HCI without H4 indicators (data link 1001)"
        case .hciUART: "HCI H4 (data link 1002)"
        case .hciBCSP: "BCSP (data link 1003)"
        case .hciThreeWireUART: "HCI H5, the three-wire UART (data link 1004)"
        case .linuxMonitor: "Linux's Bluetooth monitor (data link 2001)"
        default: "data link \(rawValue)"
        }
    }
}

extension BTSnoopRecord {
    /// Decodes the record at the start of `bytes`.
    static func layout(
        _ bytes: RawSpan,
        in dataLink: BTSnoopHeader.DataLink
    ) throws(PacketDecodingError) -> RecordLayout {
        var reader = ByteReader(bytes)
        let record = try BTSnoopRecord(decoding: &reader)
        let content = record.content(in: dataLink)
        return RecordLayout(
            length: reader.position,
            meaning: content.meaning,
            payload: (headerLength + content.headerLength)..<reader.position,
            time: CaptureTime(microsecondsSince1970: record.microsecondsSince1970),
            adapterIndex: content.adapterIndex ?? 0,
            cutLength: record.originalLength - UInt32(record.packet.byteCount),
            cumulativeDrops: UInt64(record.cumulativeDrops)
        )
    }

    private func content(in dataLink: BTSnoopHeader.DataLink) -> LinkContent {
        switch dataLink {
        case .linuxMonitor:
            let opcode = MonitorOpcode(rawValue: UInt16(truncatingIfNeeded: flags))
            return LinkContent(
                meaning: opcode.meaning,
                headerLength: 0,
                adapterIndex: UInt16(truncatingIfNeeded: flags >> 16)
            )
        case .hciUnencapsulated:
            // Here, synchronous and ISO data cannot be distinguished from ACL data.
            let kind: CapturedPacketKind =
                switch (isCommandOrEvent, direction) {
                case (true, .hostToController): .command
                case (true, .controllerToHost): .event
                case (false, _): .acl
                }
            return LinkContent(meaning: .packet(kind, direction), headerLength: 0)
        default: return CaptureLinkType.hciH4.parse(packet, direction: direction)
        }
    }
}
