#if DEBUG
    import BLESMP

    // For tests, which begin with bonds that no pairing has made.
    extension BluetoothHost {
        /// Adds a bond from another host, or replaces the bond with the same peer. The bond is privileged, because the
        /// app has asked for it.
        ///
        /// The sign counters of a key never decrease: the higher value stays.
        package func importBond(_ record: BondRecord) throws(HostError) {
            let effects: [BondEffect]
            do throws(SecurityError) {
                effects = try bonds.insert(record, inUse: connectedIdentities)
            } catch {
                throw .security(error)
            }
            perform(effects)
            endInput()
        }
    }
#endif
