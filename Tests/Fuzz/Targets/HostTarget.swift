import BLE
import BLEByteCoding
import BLEGATT
import BLEHCI
import BluetoothHost
import BluetoothTesting
import BluetoothTypes

/// Fuzzes a host in a simulated world that is linked to a peripheral and to a central. Its controller also sends the
/// packets of a script. These packets may be for other links, for these links, or meaningless. The app and both peers
/// may act before each packet.
enum HostFuzzing {
    /// - Parameter script: each packet is a packet of the controller, with its H4 indicator. The choice may address it
    ///   to one of the links and start an action before it. The delay, in units of 10 ms, lets the world run before it.
    static func run(_ script: Script) {
        runWorld { world in
            let lamp = try await world.peripheral("lamp", services: [service])
            let device = world.device("host")
            let adapter = try await device.openAdapter {
                $0.scanSilenceTimeout = nil
                $0.pairingDelegate = Consent()
            }
            let published = try await adapter.peripheral.publish([definition])
            let advertising = try await adapter.peripheral.startAdvertising(AdvertisementConfiguration())
            let scan = adapter.central.scan()
            let peer = try await adapter.central.connect(to: lamp.address)
            let phone = try await world.device("phone").openAdapter()
            let client = try await phone.central.connect(to: device.address)
            var actions = HostActions(
                world: world,
                adapter: adapter,
                lamp: lamp,
                peer: peer,
                client: client,
                value: published[0].characteristics[0].valueHandle
            )
            let work = Task(executorPreference: world.taskExecutor) {
                while !Task.isCancelled, await peer.isConnected {
                    _ = try? await peer.discoverAll()
                    for handle in UInt16(1)...20 { _ = try? await peer.read(AttributeHandle(rawValue: handle)) }
                    try? await world.sleep(for: .seconds(10))
                }
            }
            for packet in script.packets {
                actions.begin(packet.choice >> 3 & 15, packet.octets)
                if packet.delay > 0 { try await world.sleep(for: .milliseconds(Int(packet.delay) * 10)) }
                device.inject(addressed(packet).rawSpan)
                let contradiction = await adapter.host.contradiction()
                require(contradiction == nil, contradiction ?? "")
            }
            work.cancel()
            actions.cancel()
            _ = await work.value
            _ = scan
            await advertising.stop()
            await adapter.close()
            await actions.end()
            let held = await adapter.host.inspect()
            require(held.isEmpty, "a closed host holds \(held)")
        }
    }

    /// The packet, addressed to one of the host's own links if its choice requires this.
    private static func addressed(_ packet: Script.Packet) -> [UInt8] {
        var octets = packet.octets
        guard packet.choice & 1 != 0, let place = handlePlace(in: octets), octets.count > place + 1 else {
            return octets
        }
        octets[place] = 0x40 | packet.choice >> 1 & 3
        octets[place + 1] &= 0xF0
        return octets
    }

    /// The position of the connection handle in a packet; nil if it has none.
    private static func handlePlace(in octets: [UInt8]) -> Int? {
        switch octets.first.flatMap(PacketType.init(rawValue:)) {
        case .acl: return 1
        case .event where octets.count > 3:
            switch octets[1] {
            case 0x05, 0x08, 0x0C, 0x13, 0x30, 0x59: return 4
            case 0x3E:
                switch octets[3] {
                case 0x01, 0x03, 0x04, 0x0A, 0x0C, 0x29: return 5
                case 0x05, 0x06, 0x07, 0x14: return 4
                default: return nil
                }
            default: return nil
            }
        default: return nil
        }
    }

    private static let service = ScriptedService(
        "FFE0",
        [ScriptedCharacteristic("FFE1", properties: [.read, .write, .notify], value: [1, 2, 3])]
    )

    private static let definition = ServiceDefinition(
        uuid: "FFF0",
        characteristics: [
            CharacteristicDefinition(
                uuid: "FFF1",
                properties: [.read, .write, .notify, .indicate],
                permissions: [.read, .write],
                value: .stored([1])
            ),
            CharacteristicDefinition(
                uuid: "FFF2",
                properties: [.read, .write],
                permissions: [.readEncrypted, .writeAuthenticated],
                value: .stored([2])
            ),
        ]
    )
}
