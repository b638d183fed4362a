import BluetoothTypes

extension Toolbox {
    /// The random address hash function ah (Vol 3, Part H, 2.2.2).
    ///
    /// - Parameters:
    ///   - irk: the Identity Resolving Key.
    ///   - prand: 24 bits.
    /// - Returns: 24 bits.
    public func ah(irk: UInt128, prand: UInt32) -> UInt32 {
        UInt32(truncatingIfNeeded: functions.encrypt(UInt128(prand & 0xFF_FFFF), key: irk)) & 0xFF_FFFF
    }

    /// Generates a resolvable private address (Vol 6, Part B, 1.3.2.2): 24 bits that begin with 0b01, and their hash.
    public func resolvablePrivateAddress(
        irk: UInt128,
        random: inout some RandomNumberGenerator
    ) -> DeviceAddress {
        var part = UInt32(truncatingIfNeeded: random.next()) & 0x3F_FFFF
        // The random part must have at least one bit set and one bit clear.
        if part == 0 || part == 0x3F_FFFF { part = 1 }
        let prand = part | 0x40_0000
        return DeviceAddress(UInt64(prand) << 24 | UInt64(ah(irk: irk, prand: prand)), isRandom: true)
    }

    /// Whether an address is a resolvable private address that was generated with a key (Vol 6, Part B, 1.3.2.3).
    public func resolves(_ address: DeviceAddress, irk: UInt128) -> Bool {
        guard address.kind == .resolvablePrivate else { return false }
        return ah(irk: irk, prand: UInt32(truncatingIfNeeded: address.value >> 24)) == address.value & 0xFF_FFFF
    }
}
