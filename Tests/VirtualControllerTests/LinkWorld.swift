import BluetoothTypes
import ByteCoding
import HCI

@testable import VirtualController

/// Two controllers with a link between them, and what each has told its host: controller 0 is the central.
final class LinkWorld {
    static let handle: ConnectionHandle = 0x0040
    let world: World

    init(
        interval: UInt16 = 24,
        latency: UInt16 = 0,
        supervisionTimeout: UInt16 = 100,
        seed: UInt64 = 0,
        isEstablished: Bool = true,
        configure: (inout VirtualController.Configuration) -> Void = { _ in },
        prepare: (World) -> Void = { _ in }
    ) {
        world = World(count: 2, seed: seed, masks: LEEventMask(rawValue: .max), configure: configure)
        prepare(world)
        world.forget()
        _ = Link.open(
            central: LinkParty(
                controller: world.controllers[0],
                peer: PeerAddress(world.controllers[1].configuration.address)
            ),
            peripheral: LinkParty(
                controller: world.controllers[1],
                peer: PeerAddress(world.controllers[0].configuration.address)
            ),
            parameters: LinkParameters(interval: interval, latency: latency, supervisionTimeout: supervisionTimeout),
            phy: .le1M
        )
        if isEstablished {
            // A packet each way, after which nothing is told but that.
            send(Data(0x00, count: 1), from: 0)
            run(.seconds(1))
            world.forget()
        }
    }

    var air: Air { world.air }
    var central: VirtualController { world.controllers[0] }
    var peripheral: VirtualController { world.controllers[1] }
    func packets(_ index: Int) -> [[UInt8]] { world.packets[index] }

    /// What the host has been told but of completed packets.
    func told(_ index: Int) -> [[UInt8]] { packets(index).filter { !$0.starts(with: [0x04, 0x13]) } }

    func run(_ duration: Duration) { world.run(duration) }

    /// An ACL packet's payload of octets that count up.
    struct Data {
        let bytes: [UInt8]

        init(_ first: UInt8, count: Int) {
            bytes = (0..<count).map { UInt8(truncatingIfNeeded: Int(first) + $0) }
        }
    }

    func send(_ data: Data, from index: Int) {
        world.controllers[index].receive(
            PacketBuffer.bytes { buffer in
                buffer.append(PacketType.acl.rawValue)
                ACLHeader(
                    connectionHandle: LinkWorld.handle,
                    packetBoundaryFlag: .firstNonFlushable,
                    dataTotalLength: UInt16(data.bytes.count)
                ).encode(into: &buffer)
                buffer.append(data.bytes)
            }.rawSpan
        )
    }

    /// The payloads of ACL packets that the host was given, each begun by a start.
    func received(_ index: Int) -> [[UInt8]] {
        var payloads: [[UInt8]] = []
        for packet in packets(index) where packet.first == PacketType.acl.rawValue {
            if packet[2] >> 4 == 0b10 {
                payloads.append(Array(packet.dropFirst(5)))
            } else if !payloads.isEmpty {
                payloads[payloads.count - 1] += packet.dropFirst(5)
            }
        }
        return payloads
    }

    /// How many buffers the host was given back.
    func completed(_ index: Int) -> Int {
        packets(index).filter { $0.starts(with: [0x04, 0x13]) }.reduce(0) { $0 + Int($1[6]) }
    }

    /// Lets time pass until something holds, at most a minute; gives how long that took.
    func run(until isDone: () -> Bool) -> Duration? {
        let start = air.now
        while !isDone() {
            guard air.now - start < .seconds(60), let due = air.nextDue else { return nil }
            air.advance(to: due)
        }
        return air.now - start
    }
}
