import BLEByteCoding
import BLECapture
import BLEHCI
import Testing

@testable import CoreBluetooth

/// The captures that managers record, on controllers in this process, in real time.
@Suite("The captures of managers", .timeLimit(.minutes(5)))
struct CaptureOptionTests {
    private static let service = CBUUID(string: "A3B0C1D2-3C47-4C0E-9B3B-3B7F0B1D2E01")
    private static let secret = CBUUID(string: "FFE8")

    /// A peripheral manager with a value that needs encryption.
    private final class Vault: NSObject, CBPeripheralManagerDelegate {
        private(set) var manager: CBPeripheralManager!

        init(options: [String: Any]) {
            super.init()
            manager = CBPeripheralManager(delegate: self, queue: DispatchQueue(label: "vault"), options: options)
        }

        func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
            guard peripheral.state == .poweredOn else { return }
            let service = CBMutableService(type: CaptureOptionTests.service, primary: true)
            service.characteristics = [
                CBMutableCharacteristic(
                    type: CaptureOptionTests.secret,
                    properties: .read,
                    value: Data([42]),
                    permissions: .readEncryptionRequired
                )
            ]
            peripheral.add(service)
        }

        func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
            peripheral.startAdvertising([CBAdvertisementDataServiceUUIDsKey: [service.uuid]])
        }
    }

    /// Reads the value, which makes the devices pair, and ends both managers.
    private func pair(_ central: [String: Any], _ peripheral: [String: Any]) async throws {
        let vault = Vault(options: peripheral)
        let manager = CBCentralManager(delegate: nil, queue: DispatchQueue(label: "central"), options: central)
        let states = manager.linux.states
        if manager.state != .poweredOn {
            for await state in states where state == .poweredOn { break }
        }
        let discoveries = manager.linux.discoveries
        manager.scanForPeripherals(withServices: [CaptureOptionTests.service])
        var found: CBPeripheral?
        for await discovery in discoveries {
            found = discovery.peripheral
            break
        }
        manager.stopScan()
        let device = try #require(found)
        try await manager.linux.connected(device, timeout: .seconds(60))
        let service = try #require(await device.linux.discoverServices([CaptureOptionTests.service]).first)
        let secret = try #require(await device.linux.discoverCharacteristics(for: service).first)
        #expect(try await device.linux.read(secret) == Data([42]))
        withExtendedLifetime(vault) {}
    }

    /// The long term keys in the commands of a capture.
    private func keys(inCapture path: String) throws -> [UInt128] {
        let capture = try [UInt8](Data(contentsOf: URL(fileURLWithPath: path)))
        var reader = CaptureReader()
        reader.append(capture.rawSpan)
        reader.finish()
        var keys: [UInt128] = []
        while case .record = try reader.advance() {
            guard let record = reader.record, case .packet(.command, _, let bytes) = record.content,
                let command = try? CommandPacket(decoding: bytes)
            else { continue }
            switch command.opcode {
            case LEEnableEncryption.opcode: keys.append(try command.decode(LEEnableEncryption.self).longTermKey)
            case LELongTermKeyRequestReply.opcode:
                keys.append(try command.decode(LELongTermKeyRequestReply.self).longTermKey)
            default: break
            }
        }
        return keys
    }

    @Test("An option of either manager replaces keys by zeros", arguments: [true, false])
    func captureMasksKeys(isMasked: Bool) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("capture-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let air = "virtual:capture-\(isMasked)"
        var central: [String: Any] = [
            CBCentralManagerOptionAdapterKey: air, CBCentralManagerOptionCaptureKey: "\(folder)/central.btsnoop",
        ]
        var peripheral: [String: Any] = [
            CBPeripheralManagerOptionAdapterKey: air,
            CBPeripheralManagerOptionCaptureKey: "\(folder)/peripheral.pcapng",
        ]
        if isMasked {
            central[CBCentralManagerOptionCaptureMasksKeysKey] = true
            peripheral[CBPeripheralManagerOptionCaptureMasksKeysKey] = NSNumber(value: true)
        }
        try await pair(central, peripheral)
        // Hosts of other tests may have failed.
        _ = await HostRegistry.settle()
        for name in ["central.btsnoop", "peripheral.pcapng"] {
            let keys = try keys(inCapture: "\(folder)/\(name)")
            #expect(!keys.isEmpty && keys.allSatisfy { ($0 == 0) == isMasked }, "\(name)")
        }
    }
}
