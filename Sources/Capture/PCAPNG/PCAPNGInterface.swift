import ByteCoding

/// What an Interface Description Block says of the packets of an interface.
struct PCAPNGInterface: Sendable {
    enum Option {
        static let timeResolution: UInt16 = 9
        static let timeOffset: UInt16 = 14
    }

    let linkType: CaptureLinkType
    /// Longer packets are cut; zero for none.
    let snapLength: UInt32
    /// In what times are counted: the power of ten, or with the highest bit of two, that makes up a second.
    private var timeResolution: UInt8 = 6
    /// Seconds to be added to all times.
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

    /// The time of a packet that was stamped with `units`.
    func time(_ units: UInt64) -> CaptureTime {
        let exponent = Int(timeResolution & 0x7F)
        let seconds: UInt64
        let nanoseconds: UInt64
        if timeResolution & 0x80 != 0 {
            seconds = units >> exponent
            let fraction = UInt128(units - (seconds << exponent))
            nanoseconds = UInt64(truncatingIfNeeded: (fraction * 1_000_000_000) >> exponent)
        } else {
            // From ten to the minus twenty on, all units there are make less than a second.
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

    /// Ten to the power of `exponent`; nil where that is more than 64 bits hold.
    private static func powerOfTen(_ exponent: Int) -> UInt64? {
        guard exponent <= 19 else { return nil }
        return (0..<exponent).reduce(UInt64(1)) { power, _ in power * 10 }
    }
}

/// An option of a block: what there is besides the fields that all have.
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
    /// Skips what fills a field up to a multiple of four octets.
    mutating func skipPadding() throws(PacketDecodingError) {
        try skip((4 - position % 4) % 4)
    }

    /// The next option of a block; nil where there is none, or the one that ends them.
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
