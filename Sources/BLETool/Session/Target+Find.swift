import BLE
import BLEProfiles
import BluetoothTypes

extension Target {
    /// Scans for the target until an advertisement of it has what a command needs.
    ///
    /// - Parameter accept: what the command takes from an advertisement; nil to wait for another one.
    /// - Throws: ``ToolError/notSeen(_:_:)`` if there is none within the patience.
    func find<Found: Sendable>(
        with central: Central,
        within patience: Seconds,
        _ accept: @escaping @Sendable (Advertisement) -> Found?
    ) async throws -> Found {
        let found = try await BLETool.within(patience.duration) { () async throws -> Found in
            for try await advertisement in central.scan(scanOptions) {
                guard matches(advertisement.address, advertisement.data) else { continue }
                if let found = accept(advertisement) { return found }
            }
            try Task.checkCancellation()
            throw ToolError.scanEnded
        }
        guard let found else { throw ToolError.notSeen(self, patience) }
        return found
    }

    /// Scans for a connectable advertisement of the target.
    ///
    /// - Returns: the address to connect to.
    func findConnectable(with central: Central, within patience: Seconds) async throws -> DeviceAddress {
        try await find(with: central, within: patience) { $0.isConnectable ? $0.address : nil }
    }

    /// Options with which a scan reports the target and few other devices.
    private var scanOptions: ScanOptions {
        switch self {
        case .address: ScanOptions()
        case .name(let name): ScanOptions(name: name)
        case .service(let uuid): ScanOptions(serviceUUIDs: [uuid])
        }
    }
}

extension Advertisement {
    /// The periodic train that the advertisement can announce; nil if it announces none.
    var possibleTrain: PeriodicTrainRequest? {
        guard !isConnectable, let sid = advertisingSetIdentifier else { return nil }
        return PeriodicTrainRequest(address: privateAddress ?? address, sid: sid)
    }
}
