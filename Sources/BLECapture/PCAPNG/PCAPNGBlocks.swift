import BLEByteCoding

/// Reads the blocks of a pcapng file, and keeps the state that later blocks depend on.
struct PCAPNGBlocks: Sendable {
    /// The block types that are read. All others are skipped.
    enum BlockType {
        static let sectionHeader: UInt32 = 0x0A0D_0D0A
        static let interfaceDescription: UInt32 = 1
        /// Obsolete, replaced by the enhanced packet block.
        static let packet: UInt32 = 2
        static let simplePacket: UInt32 = 3
        static let enhancedPacket: UInt32 = 6
    }

    /// Options of a packet's block.
    enum PacketOption {
        static let flags: UInt16 = 2
        static let dropCount: UInt16 = 4
    }

    /// Maximum length of a block that is read as a whole, in bytes. It holds the longest packet and many options.
    private static let maximumBlockLength: UInt32 = 1 << 20
    /// Maximum number of interfaces of one section. The limit bounds the memory for a malicious file.
    static let maximumInterfaceCount = 4096
    private static let smallestBlockLength: UInt32 = 12
    static let byteOrderMagic: UInt32 = 0x1A2B_3C4D

    /// A block that is being skipped. The length at its end has not been read yet.
    private struct PassedBlock {
        var offset: UInt64
        var length: UInt32
    }

    private var order = ByteOrder.littleEndian
    private var sectionCount: UInt64 = 0
    private var interfaces: [PCAPNGInterface] = []
    private var cumulativeDrops: UInt64 = 0
    /// The link type of the file's first interface.
    private var firstLinkType: CaptureLinkType?
    private var hasSupportedInterface = false
    private var passed: PassedBlock?

    static func isAtStart(of bytes: RawSpan) -> Bool {
        var reader = ByteReader(bytes)
        guard (try? reader.readUInt32()) == BlockType.sectionHeader, (try? reader.skip(4)) != nil else { return false }
        guard let magic = try? reader.readUInt32() else { return true }
        return PCAPNGBlocks.byteOrder(magic) != nil
    }

    /// - Parameter magic: the byte-order magic, read with the least significant byte first.
    private static func byteOrder(_ magic: UInt32) -> ByteOrder? {
        switch magic {
        case byteOrderMagic: .littleEndian
        case byteOrderMagic.byteSwapped: .bigEndian
        default: nil
        }
    }

    var isWithinBlock: Bool { passed != nil }

    /// The link type of the first interface, if the file has interfaces so far and none is supported.
    var unsupportedLinkType: CaptureLinkType? { hasSupportedInterface ? nil : firstLinkType }

    /// The offset in the file of the block that is being skipped.
    var blockOffset: UInt64? { passed?.offset }

    /// Reads the block at the start of `bytes`, which is at `offset` of the file.
    mutating func next(_ bytes: RawSpan, at offset: UInt64) throws(PacketDecodingError) -> CaptureElement {
        if let passed {
            var reader = OrderedByteReader(bytes, order)
            try PCAPNGBlocks.requireEqual(reader.readUInt32(), passed.length)
            self.passed = nil
            return .none(length: 4)
        }
        guard bytes.byteCount >= PCAPNGBlocks.smallestBlockLength else {
            throw .truncated(needed: Int(PCAPNGBlocks.smallestBlockLength), available: bytes.byteCount)
        }
        var reader = OrderedByteReader(bytes, try byteOrder(of: bytes))
        let type = try reader.readUInt32()
        let length = try reader.readUInt32()
        guard length >= PCAPNGBlocks.smallestBlockLength, length % 4 == 0 else {
            throw .invalidLength(Int(length), field: "pcapng block")
        }
        switch type {
        case BlockType.sectionHeader, BlockType.interfaceDescription, BlockType.packet, BlockType.simplePacket,
            BlockType.enhancedPacket:
            break
        default:
            passed = PassedBlock(offset: offset, length: length)
            return .none(length: UInt64(length) - 4)
        }
        guard length <= PCAPNGBlocks.maximumBlockLength else {
            throw .invalidLength(Int(length), field: "pcapng block")
        }
        guard bytes.byteCount >= Int(length) else {
            throw .truncated(needed: Int(length), available: bytes.byteCount)
        }
        let body = OrderedByteReader(try reader.readBytes(count: Int(length) - 12), reader.order)
        try PCAPNGBlocks.requireEqual(reader.readUInt32(), length)
        do throws(PacketDecodingError) {
            return try read(type, body, length: Int(length))
        } catch .truncated {
            // The block is complete, so a length inside it is wrong.
            throw .invalidLength(Int(length), field: "pcapng block")
        }
    }

    private static func requireEqual(_ trailer: UInt32, _ length: UInt32) throws(PacketDecodingError) {
        guard trailer == length else { throw .invalidLength(Int(trailer), field: "pcapng block, at its end,") }
    }

    /// Returns the byte order of a block. A section header defines it for the blocks that follow.
    private func byteOrder(of block: RawSpan) throws(PacketDecodingError) -> ByteOrder {
        var reader = ByteReader(block)
        guard try reader.readUInt32() == BlockType.sectionHeader else { return order }
        try reader.skip(4)
        let magic = try reader.readUInt32()
        guard let order = PCAPNGBlocks.byteOrder(magic) else {
            throw .invalidValue(UInt64(magic), field: "pcapng byte-order magic")
        }
        return order
    }

    private mutating func read(
        _ type: UInt32,
        _ body: consuming OrderedByteReader,
        length: Int
    ) throws(PacketDecodingError) -> CaptureElement {
        switch type {
        case BlockType.sectionHeader: try readSectionHeader(body)
        case BlockType.interfaceDescription:
            guard interfaces.count < PCAPNGBlocks.maximumInterfaceCount else {
                throw .invalidValue(UInt64(interfaces.count), field: "count of pcapng interfaces")
            }
            let interface = try PCAPNGInterface(decoding: body)
            firstLinkType = firstLinkType ?? interface.linkType
            if interface.linkType.isSupported { hasSupportedInterface = true }
            interfaces.append(interface)
        default: return .record(try readPacket(type, body, length: length))
        }
        return .none(length: UInt64(length))
    }

    private mutating func readSectionHeader(_ body: consuming OrderedByteReader) throws(PacketDecodingError) {
        var reader = body
        order = reader.order
        try reader.skip(4)
        let major = try reader.readUInt16()
        guard major == 1 else { throw .invalidValue(UInt64(major), field: "pcapng version") }
        interfaces.removeAll(keepingCapacity: true)
        sectionCount += 1
    }

    private mutating func readPacket(
        _ type: UInt32,
        _ body: consuming OrderedByteReader,
        length: Int
    ) throws(PacketDecodingError) -> RecordLayout {
        var reader = body
        var drops: UInt64 = 0
        var index: UInt32 = 0
        if type == BlockType.enhancedPacket {
            index = try reader.readUInt32()
        } else if type == BlockType.packet {
            index = UInt32(try reader.readUInt16())
            let count = try reader.readUInt16()
            // 0xFFFF if the recorder does not know the number.
            drops = count == 0xFFFF ? 0 : UInt64(count)
        }
        guard index < interfaces.count else { throw .invalidValue(UInt64(index), field: "pcapng interface") }
        let interface = interfaces[Int(index)]
        var time: CaptureTime?
        var includedLength: UInt32?
        if type != BlockType.simplePacket {
            let high = try reader.readUInt32()
            let low = try reader.readUInt32()
            time = interface.time(UInt64(high) << 32 | UInt64(low))
            includedLength = try reader.readUInt32()
        }
        let originalLength = try reader.readUInt32()
        let packetLength =
            includedLength ?? min(originalLength, interface.snapLength == 0 ? .max : interface.snapLength)
        guard packetLength <= CaptureReader.maximumPacketLength else {
            throw .invalidLength(Int(packetLength), field: "pcapng captured length")
        }
        let start = PCAPNGBlocks.bodyOffset + reader.position
        let packet = try reader.readBytes(count: Int(packetLength))
        var direction: CaptureDirection?
        if type != BlockType.simplePacket {
            try reader.skipPadding()
            while let option = try reader.readOption() {
                switch (option.code, option.value.byteCount) {
                case (PacketOption.flags, 4): direction = CaptureDirection(flags: try option.readUInt32(reader.order))
                case (PacketOption.dropCount, 8): drops = try option.readUInt64(reader.order)
                default: break
                }
            }
        }
        let (sum, isOver) = cumulativeDrops.addingReportingOverflow(drops)
        cumulativeDrops = isOver ? .max : sum
        let content = interface.linkType.parse(packet, direction: direction)
        return RecordLayout(
            length: length,
            meaning: content.meaning,
            payload: (start + content.headerLength)..<(start + Int(packetLength)),
            time: time,
            adapterIndex: content.adapterIndex ?? UInt16(index),
            section: sectionCount - 1,
            cutLength: originalLength > packetLength ? originalLength - packetLength : 0,
            cumulativeDrops: cumulativeDrops
        )
    }

    /// The number of bytes of a block before its body: type and length.
    private static let bodyOffset = 8
}

extension CaptureDirection {
    /// Reads the direction from the two lowest bits of a packet's flags: inbound or outbound, seen from the host.
    fileprivate init?(flags: UInt32) {
        switch flags & 3 {
        case 1: self = .controllerToHost
        case 2: self = .hostToController
        default: return nil
        }
    }
}
