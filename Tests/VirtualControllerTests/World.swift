import BluetoothTypes
import ByteCoding
import HCI

@testable import VirtualController

/// An air with controllers, and what each has sent to its host.
final class World {
    let air = Air()
    private(set) var controllers: [VirtualController] = []
    private(set) var packets: [[[UInt8]]] = []

    init(count: Int, configure: (inout VirtualController.Configuration) -> Void = { _ in }) {
        for index in 0..<count {
            var configuration = VirtualController.Configuration(
                address: DeviceAddress(0x1000_0000_0000 + UInt64(index), isRandom: false)
            )
            configure(&configuration)
            packets.append([])
            controllers.append(
                VirtualController(configuration: configuration, air: air, random: Counting(state: UInt64(index))) {
                    [unowned self] packet in packets[index].append([UInt8](copying: packet))
                }
            )
        }
    }

    struct Counting: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state >> 8
        }
    }

    /// Lets time pass.
    func run(_ duration: Duration = .milliseconds(1)) {
        air.advance(to: air.now + duration)
    }

    /// Sends a command and gives what its host was sent since the last call.
    @discardableResult
    func send<C: Command>(_ command: C, to index: Int) -> [[UInt8]] {
        send(
            PacketBuffer.bytes {
                $0.append(PacketType.command.rawValue)
                command.encodePacket(into: &$0)
            },
            to: index
        )
    }

    @discardableResult
    func send(_ packet: [UInt8], to index: Int) -> [[UInt8]] {
        packets[index] = []
        controllers[index].receive(packet.rawSpan)
        run(.zero)
        return packets[index]
    }

    func forget() {
        for index in packets.indices { packets[index] = [] }
    }

    /// Connects controller 1, the central, to controller 0.
    func connect() {
        send(LESetAdvertisingEnable(advertisingEnable: true), to: 0)
        send(LECreateConnection(peerAddress: PeerAddress(controllers[0].configuration.address)), to: 1)
        run(.seconds(3))
    }
}
