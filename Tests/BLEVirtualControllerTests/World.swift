import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

/// A virtual air with controllers, and the packets that each has sent to its host.
final class World {
    let air: Air
    private(set) var controllers: [VirtualController] = []
    private(set) var packets: [[[UInt8]]] = []

    /// - Parameters:
    ///   - seed: the seed of the air's random numbers.
    ///   - masks: the LE events that the hosts enable.
    ///   - configure: changes the configuration of a controller, which is identified by its address.
    init(
        count: Int,
        seed: UInt64 = 0,
        masks: LEEventMask = LEEventMask(rawValue: 0x07_FFFF_FFFF),
        configure: (inout VirtualController.Configuration) -> Void = { _ in }
    ) {
        air = Air(seed: seed)
        for index in 0..<count {
            var configuration = VirtualController.Configuration(address: World.address(index))
            configure(&configuration)
            packets.append([])
            controllers.append(
                VirtualController(configuration: configuration, air: air, random: SeededGenerator(seed: UInt64(index)))
                {
                    [unowned self] packet in packets[index].append([UInt8](copying: packet))
                }
            )
            send(SetEventMask(eventMask: EventMask(rawValue: .max)), to: index)
            send(LESetEventMask(leEventMask: masks), to: index)
        }
        forget()
    }

    /// The public address of a controller.
    static func address(_ index: Int) -> DeviceAddress {
        DeviceAddress(0x1000_0000_0000 + UInt64(index), isRandom: false)
    }

    /// Lets time pass.
    func run(_ duration: Duration = .milliseconds(1)) {
        air.advance(to: air.now + duration)
    }

    /// Sends a command.
    ///
    /// - Returns: the packets that its host received since the last call.
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

    /// Sends a command. Other packets are kept.
    ///
    /// - Returns: the status in its answer; nil if there is no answer.
    func status(of command: any Command, to index: Int) -> HCIErrorCode? {
        let earlier = packets[index]
        let answers = send(command, to: index)
        packets[index] = earlier + answers.dropFirst()
        guard let answer = answers.first, answer.count > 6 else { return nil }
        switch answer[1] {
        case 0x0E: return HCIErrorCode(rawValue: answer[6])
        case 0x0F: return HCIErrorCode(rawValue: answer[3])
        default: return nil
        }
    }

    /// Sends commands that must succeed.
    func succeed(_ commands: any Command..., at index: Int) {
        for command in commands {
            let status = status(of: command, to: index)
            #expect(status == .success, "\(command)")
        }
    }

    func forget() {
        for index in packets.indices { packets[index] = [] }
    }

    /// The parameters of the LE events with a subevent code that a host received, after the code.
    func events(_ subevent: UInt8, at index: Int) -> [[UInt8]] {
        packets[index].filter { $0.count > 3 && $0[0] == 0x04 && $0[1] == 0x3E && $0[3] == subevent }
            .map { Array($0.dropFirst(4)) }
    }

    /// Connects controller 1, the central, to controller 0.
    func connect() {
        send(LESetAdvertisingEnable(advertisingEnable: true), to: 0)
        send(LECreateConnection(peerAddress: PeerAddress(controllers[0].configuration.address)), to: 1)
        run(.seconds(3))
    }
}

extension World {
    /// An extended report, with its data.
    struct Report: Equatable {
        var eventType: LEExtendedAdvertisingReport.EventType
        var address: PeerAddress
        var phys: [PHY]
        var sid: UInt8
        var txPower: Int8
        var rssi: Int8
        var periodicInterval: UInt16
        var directAddress: PeerAddress
        var data: [UInt8]
    }

    func extendedReports(at index: Int) -> [Report] {
        events(LEExtendedAdvertisingReport.subeventCode, at: index).compactMap { parameters in
            guard let event = try? LEExtendedAdvertisingReport(decoding: parameters.rawSpan) else { return nil }
            var reports = event.reports
            guard let report = try? reports.next() else { return nil }
            return Report(
                eventType: report.eventType,
                address: report.address,
                phys: [report.primaryPHY, report.secondaryPHY],
                sid: report.advertisingSID,
                txPower: report.txPower,
                rssi: report.rssi,
                periodicInterval: report.periodicAdvertisingInterval,
                directAddress: report.directAddress,
                data: [UInt8](copying: report.data)
            )
        }
    }

    func terminated(at index: Int) -> [LEAdvertisingSetTerminated] {
        events(LEAdvertisingSetTerminated.subeventCode, at: index).compactMap {
            try? LEAdvertisingSetTerminated(decoding: $0.rawSpan)
        }
    }

    func connections(at index: Int) -> [LEEnhancedConnectionComplete] {
        events(LEEnhancedConnectionComplete.subeventCode, at: index).compactMap {
            try? LEEnhancedConnectionComplete(decoding: $0.rawSpan)
        }
    }
}
