import BLEHCI
import BluetoothTypes

/// The periodic advertiser list: advertising sets whose trains the host wants (Vol 4, Part E, 7.8.70).
struct PeriodicAdvertiserList {
    private struct Entry: Hashable {
        let address: DeviceAddress
        let sid: UInt8
    }

    static let size: UInt8 = 8

    private var entries: Set<Entry> = []

    func contains(_ address: DeviceAddress, _ sid: UInt8) -> Bool {
        entries.contains(Entry(address: address, sid: sid))
    }

    fileprivate mutating func insert(_ address: DeviceAddress, _ sid: UInt8) -> HCIErrorCode {
        guard sid <= 0x0F, !contains(address, sid) else { return .invalidHCICommandParameters }
        guard entries.count < Int(Self.size) else { return .memoryCapacityExceeded }
        entries.insert(Entry(address: address, sid: sid))
        return .success
    }

    fileprivate mutating func remove(_ address: DeviceAddress, _ sid: UInt8) -> HCIErrorCode {
        guard sid <= 0x0F else { return .invalidHCICommandParameters }
        return entries.remove(Entry(address: address, sid: sid)) == nil ? .unknownAdvertisingIdentifier : .success
    }

    fileprivate mutating func removeAll() { entries = [] }
}

extension CommandTable {
    /// Adds the periodic advertiser list (Vol 4, Part E, 7.8.70 to 7.8.73). It must not change while a synchronization
    /// is being created.
    mutating func addPeriodicAdvertiserList() {
        carryOut(LEAddDeviceToPeriodicAdvertiserList.self, of: .extended, needs: .periodicAdvertising) {
            guard $0.synchronizer.pending == nil else { return .commandDisallowed }
            return $0.synchronizer.advertiserList.insert($1.advertiserAddress, $1.advertisingSID)
        }
        carryOut(LERemoveDeviceFromPeriodicAdvertiserList.self, of: .extended, needs: .periodicAdvertising) {
            guard $0.synchronizer.pending == nil else { return .commandDisallowed }
            return $0.synchronizer.advertiserList.remove($1.advertiserAddress, $1.advertisingSID)
        }
        carryOut(LEClearPeriodicAdvertiserList.self, of: .extended, needs: .periodicAdvertising) { controller, _ in
            guard controller.synchronizer.pending == nil else { return .commandDisallowed }
            controller.synchronizer.advertiserList.removeAll()
            return .success
        }
        answer(LEReadPeriodicAdvertiserListSize.self, needs: .periodicAdvertising) { _, _ in
            .success(.init(periodicAdvertiserListSize: PeriodicAdvertiserList.size))
        }
    }
}
