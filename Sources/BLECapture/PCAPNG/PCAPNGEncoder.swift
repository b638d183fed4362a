import BLEByteCoding

/// Encodes the blocks of one section of a pcapng file, in little-endian byte order.
struct PCAPNGEncoder: Sendable {
    /// The adapter of each interface.
    private var adapters: [UInt16] = []
    /// The number of lost packets reported with the last packet.
    private var cumulativeDrops: UInt64 = 0

    func encodeSectionHeader(into buffer: inout PacketBuffer) {
        let length: UInt32 = 28
        buffer.append(PCAPNGBlocks.BlockType.sectionHeader)
        buffer.append(length)
        buffer.append(PCAPNGBlocks.byteOrderMagic)
        buffer.append(1 as UInt16)
        buffer.append(0 as UInt16)
        // The length of the section is not known yet.
        buffer.append(UInt64.max)
        buffer.append(length)
    }

    /// Returns the interface of an adapter. Writes its description first if it is new.
    ///
    /// - Returns: nil if the section has the maximum number of interfaces.
    mutating func interface(
        of adapter: UInt16,
        _ linkType: CaptureLinkType,
        into buffer: inout PacketBuffer
    ) -> UInt32? {
        if let index = adapters.firstIndex(of: adapter) { return UInt32(index) }
        guard adapters.count < PCAPNGBlocks.maximumInterfaceCount else { return nil }
        adapters.append(adapter)
        let length: UInt32 = 32
        buffer.append(PCAPNGBlocks.BlockType.interfaceDescription)
        buffer.append(length)
        buffer.append(linkType.rawValue)
        buffer.append(0 as UInt16)
        // Packets are not truncated.
        buffer.append(0 as UInt32)
        PCAPNGEncoder.encodeOption(PCAPNGInterface.Option.timeResolution, length: 1, into: &buffer)
        buffer.append(9 as UInt8)
        buffer.appendZeros(3)
        buffer.append(0 as UInt32)
        buffer.append(length)
        return UInt32(adapters.count - 1)
    }

    /// Writes an Enhanced Packet Block.
    ///
    /// - Parameters:
    ///   - header: the header of each packet in this link type, written with its most significant byte first.
    ///   - indicator: the H4 indicator, if the link type has it.
    mutating func encodePacket(
        header: UInt32,
        indicator: UInt8?,
        _ bytes: RawSpan,
        _ direction: CaptureDirection?,
        _ stamp: CaptureWriter.Stamp,
        interface: UInt32,
        into buffer: inout PacketBuffer
    ) {
        let packetLength = 4 + (indicator == nil ? 0 : 1) + bytes.byteCount
        let padding = (4 - packetLength % 4) % 4
        let drops = stamp.cumulativeDrops > cumulativeDrops ? stamp.cumulativeDrops - cumulativeDrops : 0
        cumulativeDrops = max(cumulativeDrops, stamp.cumulativeDrops)
        var optionLength = (direction == nil ? 0 : 8) + (drops == 0 ? 0 : 12)
        if optionLength > 0 { optionLength += 4 }
        let length = UInt32(truncatingIfNeeded: 32 + packetLength + padding + optionLength)
        let time = UInt64(max(stamp.time.nanosecondsSince1970, 0))

        buffer.append(PCAPNGBlocks.BlockType.enhancedPacket)
        buffer.append(length)
        buffer.append(interface)
        buffer.append(UInt32(truncatingIfNeeded: time >> 32))
        buffer.append(UInt32(truncatingIfNeeded: time))
        buffer.append(UInt32(truncatingIfNeeded: packetLength))
        buffer.append(stamp.originalLength(packetLength))
        buffer.append(header.byteSwapped)
        if let indicator { buffer.append(indicator) }
        buffer.append(bytes)
        buffer.appendZeros(padding)
        if let direction {
            PCAPNGEncoder.encodeOption(PCAPNGBlocks.PacketOption.flags, length: 4, into: &buffer)
            buffer.append(direction == .controllerToHost ? 1 : 2 as UInt32)
        }
        if drops > 0 {
            PCAPNGEncoder.encodeOption(PCAPNGBlocks.PacketOption.dropCount, length: 8, into: &buffer)
            buffer.append(drops)
        }
        if optionLength > 0 { buffer.append(0 as UInt32) }
        buffer.append(length)
    }

    private static func encodeOption(_ code: UInt16, length: UInt16, into buffer: inout PacketBuffer) {
        buffer.append(code)
        buffer.append(length)
    }
}
