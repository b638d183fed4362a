import BLE
import BluetoothTesting
import Testing

@Suite("Changes from outside, after a time in which nothing has happened on the air")
struct OutsideChangeTests {
    /// Connects a phone to a lamp, which then does not advertise.
    private static func connect(
        in world: World
    ) async throws -> (lamp: ScriptedPeripheral, peer: RemotePeripheral, handle: AttributeHandle) {
        let characteristic = ScriptedCharacteristic("FFE1", properties: .read, value: [7])
        let lamp = try await world.peripheral("lamp", services: [ScriptedService("FFE0", [characteristic])])
        let phone = try await world.device("phone", at: Position(x: 3, y: 0)).openAdapter()
        let peer = try await phone.central.connect(to: lamp.address)
        let handle = try #require(lamp.valueHandle(of: "FFE1"))
        #expect(try await peer.read(handle) == [7])
        await lamp.stopAdvertising()
        return (lamp, peer, handle)
    }

    @Test("The supervision timeout begins when a controller vanishes or fails", arguments: [false, true])
    func supervisionTimeoutBeginsWithTheChange(isHardwareError: Bool) throws {
        try World.run { world in
            let (lamp, peer, _) = try await Self.connect(in: world)
            try await world.sleep(for: .seconds(100))
            let start = world.elapsed
            if isHardwareError { lamp.device.failWithHardwareError() } else { lamp.vanish() }
            #expect(try await peer.disconnection() == .controller(.connectionTimeout))
            let silence = world.elapsed - start
            #expect(silence >= .seconds(4) && silence < .seconds(5), "\(silence)")
        }
    }

    /// A way in which two devices do not hear each other.
    enum Silence: CaseIterable, Sendable {
        case deadRadio
        case deadPath
        case distance

        func set(_ isSilent: Bool, in world: World) {
            let dead = RadioConditions(isDead: true)
            let (lamp, phone) = (world.devices[0], world.devices[1])
            switch self {
            case .deadRadio: world.conditions = isSilent ? dead : .perfect
            case .deadPath: world.setConditions(isSilent ? dead : nil, between: lamp, and: phone)
            case .distance: lamp.position = Position(x: isSilent ? 100_000 : 0, y: 0)
            }
        }
    }

    @Test("A silence that is shorter than the supervision timeout ends no link", arguments: Silence.allCases)
    func shortSilenceEndsNoLink(_ silence: Silence) throws {
        let world = World()
        defer { world.close() }
        let (_, peer, handle) = try world.run { try await Self.connect(in: world) }
        world.advance(by: .seconds(100))
        silence.set(true, in: world)
        world.advance(by: .seconds(1))
        silence.set(false, in: world)
        world.advance(by: .seconds(1))
        let value = try world.run { try await peer.read(handle) }
        #expect(value == [7])
    }
}
