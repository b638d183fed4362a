import BLEByteCoding
import BLECapture
import BluetoothTypes

/// Dissects the records of a capture in order, and describes each.
///
/// The dissector keeps the state that later packets need: commands and requests without an answer, links, fragmented
/// frames, discovered attributes. All of this state is bounded, so a capture of any length needs the same memory.
package final class Dissector {
    /// A summary of the records read so far; nil if it was not requested.
    package private(set) var summary: CaptureSummary?
    private var adapters: [UInt16: AdapterState] = [:]
    /// The adapter of the last packet, which is mostly that of the next packet too.
    private var lastAdapter: (index: UInt16, state: AdapterState)?
    private var firstTime: Int64?
    private var lastTime: Int64 = 0
    private var linkCount = 0
    /// The section of the last record.
    private var section: UInt64 = 0
    /// The number of packets that the recorder had lost at the last record.
    private var cumulativeDrops: UInt64 = 0

    /// - Parameter summarizing: whether ``summary`` is collected.
    package init(summarizing: Bool = false) {
        summary = summarizing ? CaptureSummary() : nil
    }

    /// Dissects the next record.
    ///
    /// - Parameter isDescribed: whether the record's layers are described. Otherwise, only the state for later records
    ///   is updated.
    package func dissect(_ record: borrowing CaptureRecord, isDescribed: Bool = true) -> PacketDescription {
        if record.section != section { beginSection(record.section) }
        let time = record.time?.microsecondsSince1970 ?? lastTime
        lastTime = time
        let firstTime = self.firstTime ?? time
        self.firstTime = firstTime
        var packet = PacketDescription(
            index: Int(truncatingIfNeeded: record.number),
            time: time,
            elapsedMicroseconds: time &- firstTime,
            adapter: record.adapterIndex,
            direction: nil,
            kind: .note
        )
        packet.dropped = noteDrops(record.cumulativeDrops)
        var isNoted = true
        switch record.content {
        case .packet(let kind, let direction, let bytes):
            packet.direction = direction
            packet.kind = Layer.Kind(kind)
            dissect(kind, bytes, cutLength: Int(record.cutLength), isDescribed, &packet)
        case .note(let note, let bytes):
            isNoted = false
            if isDescribed { packet.layers.append(Layer(note: note, bytes)) }
        case .malformed(let error, let direction, let bytes):
            packet.direction = direction
            packet.malformed.append(.init(layer: .note, reason: "\(error)"))
            if isDescribed {
                var layer = Layer(.note, "No HCI Packet")
                layer.fields.append(Field(.data, .octets([UInt8](copying: bytes))))
                packet.layers.append(layer)
            }
        }
        if record.cutLength > 0 {
            packet.malformed.append(
                .init(layer: packet.kind, reason: "cut by the recorder by \(record.cutLength) bytes")
            )
        }
        if isNoted { summary?.note(packet) }
        return packet
    }

    /// Drops the state of the preceding section: a section has adapters of its own.
    private func beginSection(_ number: UInt64) {
        section = number
        for link in adapters.values.flatMap({ $0.reset() }) {
            summary?.linkEnded(link.number, reason: nil, at: lastTime)
        }
        adapters.removeAll()
        lastAdapter = nil
    }

    /// Returns the number of packets that the recorder has lost since the last record.
    private func noteDrops(_ total: UInt64) -> UInt64 {
        // The number decreases where another capture begins.
        let count = total > cumulativeDrops ? total - cumulativeDrops : 0
        cumulativeDrops = total
        if count > 0 { summary?.noteDrops(count) }
        return count
    }

    private func dissect(
        _ kind: CapturedPacketKind,
        _ bytes: RawSpan,
        cutLength: Int,
        _ isDescribed: Bool,
        _ packet: inout PacketDescription
    ) {
        let adapter = adapter(packet.adapter)
        switch kind {
        case .command: dissectCommand(bytes, adapter, isDescribed, &packet)
        case .event: dissectEvent(bytes, adapter, isDescribed, &packet)
        case .acl: dissectACL(bytes, cutLength: cutLength, adapter, isDescribed, &packet)
        case .synchronous, .iso: dissectOther(kind, bytes, adapter, isDescribed, &packet)
        }
    }

    private func adapter(_ index: UInt16) -> AdapterState {
        if let lastAdapter, lastAdapter.index == index { return lastAdapter.state }
        let state = findAdapter(index)
        lastAdapter = (index, state)
        return state
    }

    private func findAdapter(_ index: UInt16) -> AdapterState {
        if let adapter = adapters[index] { return adapter }
        // A capture with more adapters than any machine has is damaged.
        if adapters.count >= 64 { adapters.removeAll() }
        let adapter = AdapterState()
        adapters[index] = adapter
        return adapter
    }

    /// Dissects synchronous and ISO data: the header only.
    private func dissectOther(
        _ kind: CapturedPacketKind,
        _ bytes: RawSpan,
        _ adapter: AdapterState,
        _ isDescribed: Bool,
        _ packet: inout PacketDescription
    ) {
        var reader = ByteReader(bytes)
        var layer = Layer(Layer.Kind(kind), kind == .iso ? "ISO Data" : "Synchronous Data")
        do throws(PacketDecodingError) {
            let word = try reader.readUInt16()
            packet.link = adapter.link(word & 0x0FFF)?.reference
            layer.head.append(Field(HCINames.handle, .hexadecimal(UInt64(word & 0x0FFF), digits: 4), isInLine: true))
            layer.head.append(Field(HCINames.flags, .hexadecimal(UInt64(word >> 12), digits: 1)))
            // The length in an ISO header has 14 bits; the two bits above are reserved (Vol 4, Part E, 5.4.5).
            let lengthWord = try kind == .iso ? reader.readUInt16() : UInt16(reader.readUInt8())
            let length = Int(lengthWord & 0x3FFF)
            layer.head.append(Field(HCINames.length, .measure(Int64(length), .octets), isInLine: true))
            if let reserved = Field.reservedBits(lengthWord >> 14) { layer.head.append(reserved) }
            if isDescribed {
                layer.fields.append(Field(.data, .octets([UInt8](copying: try reader.readBytes(count: length)))))
            } else {
                try reader.skip(length)
            }
            try reader.requireEnd()
        } catch {
            packet.malformed.append(.init(layer: layer.kind, reason: "\(error)"))
        }
        if isDescribed { packet.layers.append(layer) }
    }
}

extension Dissector {
    func openLink(
        _ adapter: AdapterState,
        handle: UInt16,
        peer: PeerReference?,
        isCentral: Bool?,
        at time: Int64
    ) -> LinkState {
        linkCount += 1
        let (link, ended) = adapter.open(number: linkCount, handle: handle, peer: peer, isCentral: isCentral)
        if let ended { summary?.linkEnded(ended.number, reason: nil, at: time) }
        summary?.linkBegan(link.reference, at: time)
        return link
    }

    /// Returns the link of a packet. If the link was made before the capture, opens it now.
    func link(_ handle: UInt16, _ adapter: AdapterState, at time: Int64) -> LinkState {
        adapter.link(handle) ?? openLink(adapter, handle: handle, peer: nil, isCentral: nil, at: time)
    }

    func withSummary(_ body: (inout CaptureSummary) -> Void) {
        guard summary != nil else { return }
        body(&summary!)
    }
}

extension Layer.Kind {
    init(_ kind: CapturedPacketKind) {
        self =
            switch kind {
            case .command: .command
            case .event: .event
            case .acl: .acl
            case .synchronous: .synchronous
            case .iso: .iso
            }
    }
}
