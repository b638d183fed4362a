import BLEByteCoding
import BLEHCI
import BLEVirtualController
import BluetoothTypes

/// Fuzzes software controllers on one air. Each packet of the script is a packet of a host, with its H4 indicator.
///
/// - Bits 0 and 1 of the choice select the controller.
/// - With bit 2, the packet is addressed to a link or a stream of the controller, whose number is in bits 3 and 4.
/// - Bits 5 to 7 are an event before the packet; see ``ControllerWorld/Disturbance``.
/// - The delay, in units of 4 ms, lets time pass before the packet.
///
/// Each command must be answered once, each packet to a host must be readable, and their number is limited. After a
/// reset, the controllers must be silent.
func fuzzController(_ input: [UInt8]) {
    let world = ControllerWorld()
    for packet in Script(input).packets {
        world.pass(.milliseconds(4 * Int(packet.delay)))
        world.disturb(packet.choice >> 5)
        world.send(addressed(packet), to: Int(packet.choice & 3) % ControllerWorld.count)
    }
    world.end()
}

/// The packet, addressed to a link or a stream of the controller if its choice requires this.
private func addressed(_ packet: Script.Packet) -> [UInt8] {
    var octets = packet.octets
    guard packet.choice & 4 != 0, let type = octets.first.flatMap(PacketType.init(rawValue:)) else { return octets }
    // The handle is the first parameter of most commands about a link.
    let place = type == .command ? 1 + type.headerLength : 1
    guard octets.count > place + 1 else { return octets }
    let number = packet.choice >> 3 & 3
    let handle: UInt16 = type == .iso ? firstStreamHandle : firstLinkHandle
    octets[place] = UInt8(truncatingIfNeeded: handle) + number
    octets[place + 1] = octets[place + 1] & 0xF0 | UInt8(handle >> 8)
    return octets
}

/// The handles that a controller gives to its first link and its first stream.
private let firstLinkHandle: UInt16 = 0x0040
private let firstStreamHandle: UInt16 = 0x0E60

/// Controllers on one air, and what their hosts receive.
final class ControllerWorld {
    /// What happens to the controllers before a packet.
    enum Disturbance: UInt8 {
        /// Some packets are lost on the air, and all are late. The next such event ends this.
        case badRadio = 4
        /// No packet gets through, until the next such event.
        case deadRadio = 5
        /// The second controller fails, and reports a hardware error.
        case failure = 6
        /// The second controller sends with less power.
        case power = 7
    }

    static let count = 3
    /// Maximum time of all delays together. Controllers that advertise send many packets in a long time.
    private static let timeLimit = Duration.seconds(10)
    /// Maximum number of packets to all hosts: more than twice the reports of all trains and sets in the longest time.
    private static let packetLimit = 500_000
    /// The length of the silence that is checked after a reset.
    private static let silence = Duration.seconds(60)
    /// Maximum number of instants after a reset at which actions from before it are due.
    private static let stepLimit = 10_000

    private let air = Air(seed: 1)
    private var controllers: [VirtualController] = []
    private let hosts = (0..<ControllerWorld.count).map { _ in FuzzedHost() }
    private var elapsed = Duration.zero

    init() {
        for (index, host) in hosts.enumerated() {
            let configuration = VirtualController.Configuration(
                address: ControllerWorld.address(index),
                advertisingSetCount: 4,
                maximumAdvertisingDataLength: 500,
                maximumLinks: 4,
                minimumTransmitPower: -20
            )
            controllers.append(
                VirtualController(
                    configuration: configuration,
                    air: air,
                    random: SeededGenerator(seed: UInt64(index)),
                    emit: { packet in host.receive(packet) }
                )
            )
            send(SetEventMask(eventMask: EventMask(rawValue: .max)), to: index)
            send(SetEventMaskPage2(eventMaskPage2: EventMaskPage2(rawValue: .max)), to: index)
            send(LESetEventMask(leEventMask: LEEventMask(rawValue: .max)), to: index)
        }
    }

    /// The public address of a controller.
    static func address(_ index: Int) -> DeviceAddress {
        DeviceAddress(0x1000_0000_0000 + UInt64(index), isRandom: false)
    }

    /// Lets time pass, unless the script has used it up.
    func pass(_ duration: Duration) {
        let duration = min(duration, ControllerWorld.timeLimit - elapsed)
        elapsed += duration
        air.advance(to: air.now + duration)
        let count = hosts.reduce(0) { $0 + $1.packetCount }
        require(count <= ControllerWorld.packetLimit, "\(count) packets to the hosts in \(elapsed)")
    }

    func disturb(_ number: UInt8) {
        switch Disturbance(rawValue: number) {
        case .badRadio:
            let bad = RadioConditions(loss: 0.3, latency: .milliseconds(2), jitter: .milliseconds(9))
            air.conditions = air.conditions == bad ? .perfect : bad
        case .deadRadio: air.conditions.isDead.toggle()
        case .failure: controllers[1].failWithHardwareError()
        case .power: controllers[1].setTransmitPower(-20)
        case nil: break
        }
    }

    /// Sends a packet of a host. The controller answers a command at once.
    func send(_ packet: [UInt8], to index: Int) {
        controllers[index].receive(packet.rawSpan)
        air.advance(to: air.now)
        let commands = controllers[index].statistics.commands
        let answers = hosts[index].answerCount
        require(answers == commands, "\(answers) answers to \(commands) commands, the last in \(packet.hexadecimal)")
    }

    private func send(_ command: some Command, to index: Int) {
        send(commandPacket(command), to: index)
    }

    /// Resets the controllers, which must then be silent, and removes them.
    func end() {
        air.conditions = .perfect
        for index in controllers.indices { send(Reset(), to: index) }
        let count = hosts.reduce(0) { $0 + $1.packetCount }
        air.advance(to: air.now + ControllerWorld.silence)
        let further = hosts.reduce(0) { $0 + $1.packetCount } - count
        require(further == 0, "controllers that were reset have sent \(further) packets")
        // Actions from before the reset do nothing, but retain the air until they are due.
        var steps = 0
        while let due = air.nextDue {
            air.advance(to: due)
            steps += 1
            require(steps < ControllerWorld.stepLimit, "an activity continues after a reset")
        }
        for controller in controllers { controller.vanish() }
        require(air.counts.controllers == 0, "\(air.counts.controllers) controllers have not left the air")
    }
}

/// The packet of a command, with its H4 indicator.
func commandPacket(_ command: some Command) -> [UInt8] {
    PacketBuffer.bytes { buffer in
        buffer.append(PacketType.command.rawValue)
        command.encodePacket(into: &buffer)
    }
}

/// The host of a fuzzed controller, which reads its packets and counts them.
private final class FuzzedHost {
    private(set) var packetCount = 0
    /// The number of Command Complete and Command Status events.
    private(set) var answerCount: UInt64 = 0

    func receive(_ packet: RawSpan) {
        packetCount += 1
        let octets = [UInt8](copying: packet)
        let body = packet.extracting(droppingFirst: 1)
        let isRead: Bool
        switch octets.first.flatMap(PacketType.init(rawValue:)) {
        case .event:
            isRead = (try? Event(decoding: body)) != nil
            if octets[1] == CommandComplete.code || octets[1] == CommandStatus.code { answerCount += 1 }
        case .acl: isRead = (try? ACLPacket(decoding: body)) != nil
        case .iso: isRead = (try? ISOPacket(decoding: body)) != nil
        default: isRead = false
        }
        require(isRead, "a controller has sent an unreadable packet: \(octets.hexadecimal)")
    }
}
