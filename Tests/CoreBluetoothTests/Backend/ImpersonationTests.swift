import BLE
import BluetoothHost
import BluetoothTypes
import CoreBluetooth
import Foundation
import Synchronization
import Testing

/// A device that uses a bonded device's address, against an app written as for a phone.
@Suite("Impersonation of a bonded central")
struct ImpersonationTests {
    /// Serves an open value, and a secret on encrypted links only. It answers when the test requests it.
    private final class Safe: NSObject, CBPeripheralManagerDelegate, Sendable {
        static let service = CBUUID(string: "FFB0")
        static let secret = CBUUID(string: "FFB1")
        static let open = CBUUID(string: "FFB2")
        let told = Mailroom<String>()
        let requests = Mailroom<CBATTRequest>()

        func peripheralManagerDidUpdateState(_ manager: CBPeripheralManager) {
            guard manager.state == .poweredOn else { return }
            let service = CBMutableService(type: Safe.service, primary: true)
            service.characteristics = [
                CBMutableCharacteristic(
                    type: Safe.secret,
                    properties: .read,
                    value: nil,
                    permissions: .readEncryptionRequired
                ),
                CBMutableCharacteristic(type: Safe.open, properties: .read, value: nil, permissions: .readable),
            ]
            manager.add(service)
        }

        func peripheralManager(_ manager: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
            manager.startAdvertising([CBAdvertisementDataLocalNameKey: "safe"])
        }

        func peripheralManagerDidStartAdvertising(_ manager: CBPeripheralManager, error: (any Error)?) {
            told.post("advertising")
        }

        func peripheralManager(_ manager: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
            requests.post(request)
        }

        func request(for uuid: CBUUID) async -> CBATTRequest {
            await requests.next { $0.characteristic.uuid == uuid ? $0 : nil }
        }
    }

    @Test(
        "Neither a bonded phone nor a stranger with its address gets the other's answer",
        .timeLimit(.minutes(10))
    )
    func answersGoToTheLinkThatAsked() async throws {
        let air = AdaptersOnAir("impersonation", seed: 12)
        // The phone uses private addresses that the safe's host resolves. So its controller does not know that both
        // centrals use one identity.
        let adapter = try await air.open("safe", controller: { $0.features.remove(.llPrivacy) })
        let phoneAdapter = try await air.open("phone", configure: { $0.usesPrivateAddresses = true })
        let phoneAddress = try await phoneAdapter.identityAddress
        let strangerAdapter = try await air.open("stranger", controller: { $0.address = phoneAddress })
        let address = try await adapter.identityAddress

        let safe = Safe()
        let manager = CBPeripheralManager(
            delegate: safe,
            queue: DispatchQueue(label: "safe"),
            options: [CBPeripheralManagerOptionAdapterKey: adapter]
        )
        await safe.told.next { $0 == "advertising" ? () : nil }
        let phone = try await phoneAdapter.central.connect(to: address)
        let characteristics = try await phone.discover(Safe.service.uuidString)
        let (secret, open) = (characteristics[0].valueHandle, characteristics[1].valueHandle)

        // The phone pairs in order to read the secret.
        async let first = phone.read(secret)
        let early = await safe.request(for: Safe.secret)
        early.value = Data([0])
        manager.respond(to: early, withResult: .success)
        #expect(try await first == [0])

        let stranger = try await strangerAdapter.central.connect(to: address)
        // The stranger's requests have the same numbers as the phone's, whether or not they reach the app.
        let strangerRead = Task { () -> [UInt8]? in
            defer { safe.told.post("stranger answered") }
            return try? await stranger.read(open)
        }
        let strangerRequest = Mutex<CBATTRequest?>(nil)
        let arrival = Task {
            let request = await safe.request(for: Safe.open)
            strangerRequest.withLock { $0 = request }
            safe.told.post("stranger asked")
        }
        await safe.told.next { $0.hasPrefix("stranger") ? () : nil }
        async let read = phone.read(secret)
        let request = await safe.request(for: Safe.secret)
        request.value = Data([0x5E, 0xC2])
        manager.respond(to: request, withResult: .success)
        #expect(try await read == [0x5E, 0xC2])
        if let strangerRequest = strangerRequest.withLock({ $0 }) {
            #expect(strangerRequest.central != request.central)
            strangerRequest.value = Data([1])
            manager.respond(to: strangerRequest, withResult: .success)
        }
        let answer = await strangerRead.value
        #expect(answer == nil || answer == [1])
        arrival.cancel()
        await stranger.disconnect()
        await phone.disconnect()
        for adapter in [strangerAdapter, phoneAdapter, adapter] { await adapter.close() }
        withExtendedLifetime(manager) {}
    }
}

extension Adapter {
    fileprivate var identityAddress: DeviceAddress {
        get async throws { try await information.identityAddress }
    }
}

extension RemotePeripheral {
    /// The characteristics of the first service of a type.
    fileprivate func discover(_ service: String) async throws -> [RemoteCharacteristic] {
        let uuid = try #require(BluetoothUUID(service))
        let found = try #require(try await discoverServices([uuid]).first)
        return try await discoverCharacteristics(of: found)
    }
}
