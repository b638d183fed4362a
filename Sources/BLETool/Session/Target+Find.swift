import BLE
import BLEProfiles
import BluetoothTypes
import Synchronization

extension Target {
    /// Scans for the target until an advertisement of it has what a command needs.
    ///
    /// - Parameter accept: what the command takes from an advertisement; nil to wait for another one.
    /// - Throws: ``ToolError/notSeen(_:_:scansCoded:)`` if there is none within the patience.
    func find<Found: Sendable>(
        with central: Central,
        within patience: Seconds,
        _ options: FindOptions,
        _ accept: @escaping @Sendable (Advertisement) -> Found?
    ) async throws -> Found {
        let found = try await search(with: central, within: patience, options, accept).found
        guard let found else { throw ToolError.notSeen(self, patience, scansCoded: options.coded) }
        return found
    }

    /// Scans for a connectable advertisement of the target.
    ///
    /// - Returns: the address to connect to.
    /// - Throws: ``ToolError/notSeen(_:_:scansCoded:)`` or ``ToolError/notConnectable(_:_:)``.
    func findConnectable(
        with central: Central,
        within patience: Seconds,
        _ options: FindOptions
    ) async throws -> DeviceAddress {
        let (found, isSeen) = try await search(with: central, within: patience, options) { advertisement in
            advertisement.isConnectable ? advertisement.address : nil
        }
        if let found { return found }
        throw isSeen
            ? ToolError.notConnectable(self, patience) : .notSeen(self, patience, scansCoded: options.coded)
    }

    /// - Returns: the result of `accept`, nil if there was none within the patience; and whether an advertisement of
    ///   the target was received.
    private func search<Found: Sendable>(
        with central: Central,
        within patience: Seconds,
        _ options: FindOptions,
        _ accept: @escaping @Sendable (Advertisement) -> Found?
    ) async throws -> (found: Found?, isSeen: Bool) {
        let sightings = Sightings()
        let filter = scanOptions(options)
        let found = try await BLETool.within(patience.duration) { () async throws -> Found in
            for try await advertisement in central.scan(filter) {
                guard matches(advertisement.address, advertisement.data) else { continue }
                sightings.note()
                if let found = accept(advertisement) { return found }
            }
            try Task.checkCancellation()
            throw ToolError.scanEnded
        }
        return (found, sightings.areThere)
    }

    /// Options with which a scan reports the target and few other devices.
    func scanOptions(_ options: FindOptions) -> ScanOptions {
        switch self {
        case .address: ScanOptions(phys: options.phys)
        case .name(let name): ScanOptions(name: name, phys: options.phys)
        case .service(let uuid): ScanOptions(serviceUUIDs: [uuid], phys: options.phys)
        }
    }
}

/// Whether a target was seen, for tasks that share it.
private final class Sightings: Sendable {
    private let hasAny = Atomic(false)
    var areThere: Bool { hasAny.load(ordering: .relaxed) }
    func note() { hasAny.store(true, ordering: .relaxed) }
}

extension Advertisement {
    /// The periodic train that the advertisement can announce; nil if it announces none.
    var possibleTrain: PeriodicTrainRequest? {
        guard !isConnectable, let sid = advertisingSetIdentifier else { return nil }
        return PeriodicTrainRequest(address: privateAddress ?? address, sid: sid)
    }
}
