import BLEByteCoding

/// The properties of an interface, from its Interface Description Block.
struct PCAPNGInterface: Sendable {
    enum Option {
        static let timeResolution: UInt16 = 9
        static let timeOffset: UInt16 = 14
    }

    let linkType: CaptureLinkType
    /// The length to which longer packets are truncated, in bytes; zero for no limit.
    let snapLength: UInt32
    /// The resolution of times: the negative exponent of the unit in seconds, to base 10, or to base 2 if the highest
    /// bit is set.
    private var timeResolution: UInt8 = 6
    /// The offset added to all times, in seconds.
    private var timeOffset: Int64 = 0

    init(decoding body: consuming OrderedByteReader) throws(PacketDecodingError) {
        var reader = body
        linkType = CaptureLinkType(rawValue: try reader.readUInt16())
        try reader.skip(2)
        snapLength = try reader.readUInt32()
        while let option = try reader.readOption() {
            switch (option.code, option.value.byteCount) {
            case (Option.timeResolution, 1): timeResolution = option.value[checked: 0] ?? timeResolution
            case (Option.timeOffset, 8): timeOffset = Int64(bitPattern: try option.readUInt64(reader.order))
            default: break
            }
        }
    }

    /// Returns the time of a packet with the timestamp `units`.
    func time(_ units: UInt64) -> CaptureTime {
        let exponent = Int(timeResolution & 0x7F)
        let seconds: UInt64
        let nanoseconds: UInt64
        if timeResolution & 0x80 != 0 {
            seconds = units >> exponent
            let fraction = UInt128(units - (seconds << exponent))
            nanoseconds = UInt64(truncatingIfNeeded: (fraction * 1_000_000_000) >> exponent)
        } else {
            // At exponents from 20, every 64-bit timestamp is less than one second.
            let unitsPerSecond = PCAPNGInterface.powerOfTen(exponent)
            seconds = unitsPerSecond.map { units / $0 } ?? 0
            let fraction = unitsPerSecond.map { units % $0 } ?? units
            nanoseconds =
                exponent <= 9
                ? fraction * (PCAPNGInterface.powerOfTen(9 - exponent) ?? 0)
                : PCAPNGInterface.powerOfTen(exponent - 9).map { fraction / $0 } ?? 0
        }
        let (sum, isOver) = Int64(clamping: seconds).addingReportingOverflow(timeOffset)
        return CaptureTime(seconds: isOver ? .max : sum, nanoseconds: UInt32(clamping: nanoseconds))
    }

    /// Returns ten to the power of `exponent`, or nil if 64 bits cannot hold it.
    private static func powerOfTen(_ exponent: Int) -> UInt64? {
        guard exponent <= 19 else { return nil }
        return (0..<exponent).reduce(UInt64(1)) { power, _ in power * 10 }
    }
}

/// An option of a block, in addition to the fixed fields.
struct PCAPNGOption: ~Escapable {
    let code: UInt16
    let value: RawSpan

    @_lifetime(copy value)
    init(code: UInt16, value: RawSpan) {
        self.code = code
        self.value = value
    }

    func readUInt32(_ order: ByteOrder) throws(PacketDecodingError) -> UInt32 {
        var reader = OrderedByteReader(value, order)
        return try reader.readUInt32()
    }

    func readUInt64(_ order: ByteOrder) throws(PacketDecodingError) -> UInt64 {
        var reader = OrderedByteReader(value, order)
        return try reader.readUInt64()
    }
}

extension OrderedByteReader {
    /// Skips the padding up to a multiple of four bytes.
    mutating func skipPadding() throws(PacketDecodingError) {
        try skip((4 - position % 4) % 4)
    }

    /// Returns the next option of a block, or nil at its end or at the end-of-options mark.
    @_lifetime(copy self)
    mutating func readOption() throws(PacketDecodingError) -> PCAPNGOption? {
        guard remaining > 0 else { return nil }
        let code = try readUInt16()
        let length = try readUInt16()
        guard code != 0 else { return nil }
        let value = try readBytes(count: Int(length))
        try skipPadding()
        return PCAPNGOption(code: code, value: value)
    }
}
