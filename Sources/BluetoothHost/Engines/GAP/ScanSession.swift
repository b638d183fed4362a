import BluetoothTypes

/// The identifier of one scan of a host.
public struct ScanIdentifier: Hashable, Sendable {
    let value: UInt64
}

/// An event of a scan.
public enum ScanEvent: Sendable {
    /// An advertiser that passes the filter was received.
    case advertisement(Advertisement)
    /// The scan has ended: it could not be started, or the host was closed.
    case ended(HostError)
}

/// The scan of one app: its filter, and a record of the reported advertisers.
struct ScanSession {
    private struct Reported {
        let revision: UInt64
        let isMatch: Bool
    }

    let options: ScanOptions
    private var reported = GenerationalTable<DeviceAddress, Reported>(limit: 4096)

    init(options: ScanOptions) {
        self.options = options
    }

    /// Handles the state of an advertiser.
    ///
    /// - Returns: whether the scan looks for the advertiser and this state was not reported to it yet.
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

    /// Removes the record that these advertisers were reported; for nil, the whole record.
    mutating func forget(_ addresses: Set<DeviceAddress>?) {
        guard let addresses else { return reported.removeAll() }
        for address in addresses { reported[address] = nil }
    }
}
