import BLE
import BLEATT
import BLEGATT
import BluetoothHost
import BluetoothTesting
import BluetoothTypes

/// A host of a fuzzed pair of hosts, and its app.
struct BondSide {
    let device: Device
    private(set) var adapter: Adapter
    /// A value that accepts signed writes.
    private(set) var signed: AttributeHandle
    /// A value that is read only on authenticated links, and written only on encrypted ones.
    private(set) var protected: AttributeHandle
    private let writes: WrittenValues
    private let delegate: PasskeyDelegate

    init(_ name: String, in world: World, writes: WrittenValues, delegate: PasskeyDelegate) async throws {
        device = world.device(name)
        self.writes = writes
        self.delegate = delegate
        adapter = try await BondSide.open(device, delegate, isPrivate: false, identity: nil)
        (signed, protected) = try await BondSide.publish(on: adapter, writes)
    }

    /// Opens the device's host again, without its bonds, and possibly with another identity.
    mutating func restart(isPrivate: Bool, identity: DeviceAddress?) async {
        await closeCompletely(adapter)
        device.comeBack()
        adapter = await setUp {
            try await BondSide.open(device, delegate, isPrivate: isPrivate, identity: identity)
        }
        (signed, protected) = await setUp { try await BondSide.publish(on: adapter, writes) }
    }

    private static func open(
        _ device: Device,
        _ delegate: PasskeyDelegate,
        isPrivate: Bool,
        identity: DeviceAddress?
    ) async throws -> Adapter {
        let adapter = try await device.openAdapter {
            $0.usesPrivateAddresses = isPrivate
            $0.privateAddressTimeout = .seconds(10)
            $0.identityAddress = identity
            $0.pairingDelegate = delegate
            $0.bondLimit = 2
            $0.security = policy
        }
        // Advertises until the adapter is closed.
        _ = try await adapter.host.startAdvertising(AdvertisementConfiguration())
        return adapter
    }

    /// The policy at the beginning: bonded links are not encrypted, so that signed writes are possible.
    private static var policy: SecurityPolicy {
        var policy = SecurityPolicy()
        policy.encryptsBondedLinks = false
        policy.securesOnDemand = false
        policy.justWorks = .always
        return policy
    }

    private static func publish(
        on adapter: Adapter,
        _ writes: WrittenValues
    ) async throws -> (signed: AttributeHandle, protected: AttributeHandle) {
        let signed = ServiceDefinition(
            uuid: "FFF0",
            characteristics: [
                CharacteristicDefinition(
                    uuid: "FFF1",
                    properties: [.read, .writeWithoutResponse, .authenticatedSignedWrites, .notify],
                    permissions: [.read, .write],
                    value: .handled
                )
            ]
        )
        let protected = ServiceDefinition(
            uuid: "FFF2",
            characteristics: [
                CharacteristicDefinition(
                    uuid: "FFF3",
                    properties: [.read, .write, .indicate],
                    permissions: [.readAuthenticated, .writeEncrypted],
                    value: .handled
                )
            ]
        )
        let peripheral = adapter.peripheral
        let signedServices = try await peripheral.publish([signed]) { _, access in
            if case .write(let write, _) = access { writes.receive(write.value) }
            return [1]
        }
        let protectedServices = try await peripheral.publish([protected]) { [weak host = adapter.host] client, access in
            guard case .read = access else { return [] }
            // The link may have ended since the access.
            let strength = await host?.strength(of: client)
            require(strength?.isAuthenticated ?? true, "a protected value is read without authentication")
            return [2]
        }
        return (
            signedServices[0].characteristics[0].valueHandle, protectedServices[0].characteristics[0].valueHandle
        )
    }
}
