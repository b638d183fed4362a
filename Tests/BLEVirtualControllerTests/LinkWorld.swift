import BLEByteCoding
import BLEHCI
import BluetoothTypes

@testable import BLEVirtualController

/// Two controllers with a link, and the packets that each has sent to its host. Controller 0 is the central.
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
            // A packet in each direction. From now on, only completions of it are reported.
            send(Data(0x00, count: 1), from: 0)
            run(.seconds(1))
            world.forget()
        }
    }

    var air: Air { world.air }
    var central: VirtualController { world.controllers[0] }
    var peripheral: VirtualController { world.controllers[1] }
    func packets(_ index: Int) -> [[UInt8]] { world.packets[index] }

    /// The host's packets, without events of completed packets.
    func told(_ index: Int) -> [[UInt8]] { packets(index).filter { !$0.starts(with: [0x04, 0x13]) } }

    func run(_ duration: Duration) { world.run(duration) }

    /// The payload of an ACL packet, with increasing bytes.
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

    /// The payloads of ACL packets that the host received. Each begins with a start fragment.
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

    /// The number of buffers that were returned to the host.
    func completed(_ index: Int) -> Int {
        packets(index).filter { $0.starts(with: [0x04, 0x13]) }.reduce(0) { $0 + Int($1[6]) }
    }

    /// Lets time pass until a condition is true, at most a minute.
    ///
    /// - Returns: how long it took.
    func run(until isDone: () -> Bool) -> Duration? {
        let start = air.now
        while !isDone() {
            guard air.now - start < .seconds(60), let due = air.nextDue else { return nil }
            air.advance(to: due)
        }
        return air.now - start
    }
}
