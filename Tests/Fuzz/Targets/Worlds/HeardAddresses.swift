import BLE
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Synchronization

/// The addresses that an observer has heard, for the actions of a script.
final class HeardAddresses: Sendable {
    private struct State {
        var addresses: [DeviceAddress] = []
        /// The identity address of a host that uses private addresses.
        var forbidden: DeviceAddress?
    }

    /// Maximum number of different addresses.
    private static let limit = 32

    private let state = Mutex(State())

    /// Lets no advertisement have this address from now on.
    func forbid(_ address: DeviceAddress) {
        state.withLock { $0.forbidden = address }
    }

    /// Scans until the task is cancelled. No input reaches the observer's controller, so the scan has no other end.
    func observe(_ observer: Adapter) async {
        do throws(BLEError) {
            let options = ScanOptions(isActive: false, reportsDuplicates: true)
            for try await advertisement in observer.central.scan(options) {
                hear(advertisement.address)
            }
        } catch {
            require(error == .cancelled, "the observer's scan has failed: \(error)")
        }
        require(Task.isCancelled, "the observer's scan has ended")
    }

    private func hear(_ address: DeviceAddress) {
        state.withLock { state in
            require(address != state.forbidden, "a private host advertises its identity address")
            guard !state.addresses.contains(address) else { return }
            state.addresses.append(address)
            if state.addresses.count > HeardAddresses.limit { state.addresses.removeFirst() }
        }
    }

    /// The newest address has number 0. High numbers are of addresses that nobody uses.
    subscript(number: UInt8) -> DeviceAddress {
        let heard = state.withLock { Array($0.addresses.reversed()) }
        if Int(number) < heard.count { return heard[Int(number)] }
        let prefix: [UInt64] = [0x00, 0x40, 0xC0]
        let isRandom = number & 1 == 0
        return DeviceAddress(prefix[Int(number) % 3] << 40 | UInt64(number), isRandom: isRandom)
    }
}
