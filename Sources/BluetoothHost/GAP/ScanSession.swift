import BluetoothTypes

/// Names one scan of a host.
public struct ScanIdentifier: Hashable, Sendable {
    let value: UInt64
}

/// What a scan delivers.
public enum ScanEvent: Sendable {
    case advertisement(Advertisement)
    /// The scan is over: it could not be started, or the host was closed.
    case ended(HostError)
}

/// One app's scan: its filter, and what it has been told.
struct ScanSession {
    private struct Reported {
        let revision: UInt64
        let isMatch: Bool
    }

    let options: ScanOptions
    let deliver: @Sendable (ScanEvent) -> Void
    private var reported = GenerationalTable<DeviceAddress, Reported>(limit: 4096)

    init(options: ScanOptions, deliver: @escaping @Sendable (ScanEvent) -> Void) {
        self.options = options
        self.deliver = deliver
    }

    /// Takes an advertiser's state.
    ///
    /// - Returns: whether this scan looks for it and has not been told it yet.
    mutating func receive(_ advertiser: borrowing AdvertiserTable.Advertiser) -> Bool {
        let address = advertiser.advertisement.address
        let isMatch: Bool
        if let index = reported.index(of: address), reported[index].revision == advertiser.revision {
            isMatch = reported[index].isMatch && options.reportsDuplicates
        } else {
            isMatch = options.matches(advertiser.advertisement)
            reported[address] = Reported(revision: advertiser.revision, isMatch: isMatch)
        }
        return isMatch
    }

    /// Removes the record that some advertisers were reported, or that any were if `addresses` is nil.
    mutating func forget(_ addresses: Set<DeviceAddress>?) {
        guard let addresses else { return reported.removeAll() }
        for address in addresses { reported[address] = nil }
    }
}
