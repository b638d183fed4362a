import BLEKeyStore
import BluetoothTypes
import Foundation

/// The activity of managers with a restore identifier, saved for the next process.
final class Restoration: Sendable {
    struct Central: Codable, Hashable, Sendable {
        var peripherals: [UUID] = []
        var scan: Scan?
    }

    struct Scan: Codable, Hashable, Sendable {
        var services: [String]
        var solicitedServices: [String]
        var allowsDuplicates: Bool
    }

    struct Advertisement: Codable, Hashable, Sendable {
        var localName: String?
        var services: [String]
    }

    private struct Records: Codable {
        var centrals: [String: Central] = [:]
        var peripherals: [String: Advertisement] = [:]
    }

    private static let section = "restoration"

    private let records: Guarded<Records>
    private let store: KeyStore

    init(store: KeyStore) {
        self.store = store
        records = Guarded(store.section(Restoration.section, as: Records.self) ?? Records())
    }

    func central(_ identifier: String) -> Central? {
        records.withLock { $0.centrals[identifier] }
    }

    func advertisement(_ identifier: String) -> Advertisement? {
        records.withLock { $0.peripherals[identifier] }
    }

    /// Saves the activity of a central manager. Nothing is saved if it does nothing.
    func set(_ central: Central?, for identifier: String) {
        change { $0.centrals[identifier] = central == Central() ? nil : central }
    }

    func set(_ advertisement: Advertisement?, for identifier: String) {
        change { $0.peripherals[identifier] = advertisement }
    }

    private func change(_ body: (inout Records) -> Void) {
        records.withLock { body(&$0) }
        store.change(Restoration.section) { [records] in records.withLock { $0 } }
    }
}

extension Restoration.Scan {
    init(_ request: ScanRequest) {
        services = request.services.map { "\($0)" }
        solicitedServices = request.solicitedServices.map { "\($0)" }
        allowsDuplicates = request.allowsDuplicates
    }

    var request: ScanRequest {
        ScanRequest(
            services: services.compactMap { BluetoothUUID($0) },
            solicitedServices: solicitedServices.compactMap { BluetoothUUID($0) },
            allowsDuplicates: allowsDuplicates
        )
    }
}
