import BLE
import Logging

/// A pairing with a connected device that a client or a command has requested.
///
/// Only such a request replaces a bond. Other operations leave the bond of a device that has lost its key, because any
/// device can use the address of another one. Otherwise an attacker could make the gateway forget keys.
struct DevicePairing: Sendable {
    let peripheral: RemotePeripheral
    let adapter: Adapter
    let logger: Logger

    /// Pairs, or encrypts the link with the key of the bond. If the device has lost that key, pairs again and replaces
    /// the bond. The bond is privileged afterwards. If the link is encrypted already, no pairing begins.
    ///
    /// - Returns: the identity address of the device. Without a bond, or if the link has just ended, the address that
    ///   it was connected by.
    @discardableResult
    func perform() async throws(BLEError) -> DeviceAddress {
        let address = try await peripheral.linkInformation.identity
        let bonded = await adapter.bonds().map(\.identity)
        if address.kind == .resolvablePrivate, await !peripheral.isEncrypted {
            // No bond resolves the address. It may be that of a bonded device that was reset, because the device makes
            // its private addresses with another key then. It gives its identity at the end of the pairing. If the link
            // is encrypted, the device has paired on it without a bond, and keeps this address.
            try await peripheral.pair(again: true)
        } else {
            try await pairOrReplaceBond()
        }
        guard let identity = try? await peripheral.linkInformation.identity else { return address }
        if identity != address, bonded.contains(identity) {
            logger.notice(
                "a device at an unknown private address has paired, and its bond replaces the one with its identity",
                metadata: ["address": "\(address)", "identity": "\(identity)"]
            )
        }
        // The bond may be from an earlier pairing that no client has requested.
        await adapter.setBondPrivileged(true, for: identity)
        return identity
    }

    private func pairOrReplaceBond() async throws(BLEError) {
        do throws(BLEError) {
            try await peripheral.pair()
        } catch {
            guard error == .security(.keyMissing) else { throw error }
            logger.notice("the device has lost the key of its bond, and a pairing was requested: the bond is replaced")
            try await peripheral.pair(again: true)
        }
    }
}
