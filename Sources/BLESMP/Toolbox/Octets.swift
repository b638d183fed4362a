import BluetoothTypes

extension [UInt8] {
    /// Appends the bytes of a number, the most significant first.
    ///
    /// - Parameter count: the number of bytes, counted from the least significant; nil for all.
    package mutating func append(mostSignificantFirst number: some FixedWidthInteger, count: Int? = nil) {
        for index in (0..<(count ?? number.bitWidth / 8)).reversed() {
            append(UInt8(truncatingIfNeeded: number >> (8 * index)))
        }
    }

    mutating func append(mostSignificantFirst number: UInt256Bytes) {
        append(contentsOf: number.bytes.reversed())
    }

    /// Appends an address with its type, as 56 bits.
    mutating func append(mostSignificantFirst address: DeviceAddress) {
        append(address.isRandom ? 1 : 0)
        append(mostSignificantFirst: address.value, count: 6)
    }
}

extension UInt128 {
    /// The number with these bytes. If there are more than 16, the first ones are shifted out.
    package init(mostSignificantFirst octets: some Sequence<UInt8>) {
        self = octets.reduce(0) { $0 << 8 | UInt128($1) }
    }

    init(leastSignificantFirst octets: [UInt8]) {
        self.init(mostSignificantFirst: octets.reversed())
    }
}
