import BLE

/// The adapters of a gateway.
struct AdapterSet: Sendable {
    let runners: [AdapterRunner]
    let scanner: Scanner

    /// Removes the bonds of all adapters with a device. An adapter that is absent forgets its bond when it is back.
    ///
    /// - Parameter addresses: the addresses under which adapters may be bonded to the device.
    /// - Returns: whether there was a bond.
    func removeBonds(with addresses: Set<UInt64>) async -> Bool {
        var isRemoved = false
        for runner in runners {
            for address in addresses where await runner.removeBond(with: address) { isRemoved = true }
        }
        return isRemoved
    }

    /// Drops the caches that all open adapters have saved of a device's attribute database.
    ///
    /// - Parameter addresses: the addresses under which adapters may be bonded to the device.
    func discardDatabaseCaches(of addresses: Set<UInt64>) async {
        for adapter in runners.compactMap(\.adapter) {
            for address in addresses {
                for isRandom in [false, true] {
                    await adapter.discardDatabaseCache(of: DeviceAddress(address, isRandom: isRandom))
                }
            }
        }
    }
}
