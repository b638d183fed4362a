import BLE
import BLEByteCoding
import BLEHCITransport
import BLEVirtualController
import BluetoothTypes
import Dispatch
import Synchronization
import Testing

/// A clock that only the test moves.
private final class ManualClock: Sendable {
    // An hour ahead, so that no alarm of the queue fires during a test.
    private let instant = Mutex(Instant(nanoseconds: DispatchTime.now().uptimeNanoseconds) + .seconds(3600))

    var now: Instant { instant.withLock { $0 } }

    func advance(by duration: Duration) {
        instant.withLock { $0 = $0 + duration }
    }
}

/// A host that sends and receives packets as bytes. It is used on the queue of its air.
private final class RawHost: Transport {
    private final class State {
        var onPacket: (@Sendable (RawSpan) -> Void)?
        var packets: [[UInt8]] = []
    }

    private let confined: LoopConfined<State>

    init(_ queue: DispatchQueue) {
        confined = LoopConfined(State(), to: queue)
    }

    /// The packets that the controller has sent so far.
    var packets: [[UInt8]] { confined.value.packets }

    /// Sends a packet to the controller.
    func write(_ packet: [UInt8]) {
        confined.value.onPacket?(packet.rawSpan)
    }

    func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        confined.value.onPacket = onPacket
    }

    func send(_ packet: RawSpan) {
        confined.value.packets.append([UInt8](copying: packet))
    }

    func close() {
        confined.value.onPacket = nil
    }
}

/// Two raw hosts on an air.
private final class RawHosts {
    private let clock: ManualClock
    private let air: AirOnQueue
    private let hosts: [RawHost]
    private let controllers: [AttachedController]

    init() {
        let clock = ManualClock()
        let air = AirOnQueue(label: "raw hosts", seed: 1, clock: { clock.now })
        let hosts = [RawHost(air.queue), RawHost(air.queue)]
        self.clock = clock
        self.air = air
        self.hosts = hosts
        controllers = air.queue.sync { hosts.map { air.attach($0) } }
        // All events.
        let mask = [UInt8](repeating: 0xFF, count: 8)
        for index in 0...1 {
            send([0x01, 0x01, 0x0C, 0x08] + mask, to: index)
            send([0x01, 0x01, 0x20, 0x08] + mask, to: index)
        }
    }

    /// Connects host 1 to host 0, with a supervision timeout of 2 s, and exchanges some packets.
    func connect() {
        send([0x01, 0x0A, 0x20, 0x01, 0x01], to: 0)
        let address = (0..<6).map { UInt8(truncatingIfNeeded: 0x5642_4C45_0001 >> (8 * $0)) }
        let parameters: [UInt8] = [0x00, 0x18, 0x00, 0x18, 0x00, 0x00, 0x00, 0xC8, 0x00, 0x00, 0x00, 0x00, 0x00]
        send([0x01, 0x0D, 0x20, 0x19, 0x60, 0x00, 0x60, 0x00, 0x00, 0x00] + address + parameters, to: 1)
        pass(.seconds(3))
        // LE Read Remote Features.
        send([0x01, 0x16, 0x20, 0x02, 0x40, 0x00], to: 1)
        pass(.seconds(1))
        let hasFeatures = received(1).contains { $0.starts(with: [0x04, 0x3E, 0x0C, 0x04, 0x00, 0x40, 0x00]) }
        #expect(hasFeatures, "no link")
    }

    func send(_ packet: [UInt8], to index: Int) {
        air.queue.sync { hosts[index].write(packet) }
    }

    func received(_ index: Int) -> [[UInt8]] {
        air.queue.sync { hosts[index].packets }
    }

    /// Advances the clock, and performs the actions of the air that are due.
    func pass(_ duration: Duration) {
        clock.advance(by: duration)
        air.queue.sync { air.disturb(controllers[1]) { _ in } }
    }

    /// Lets time pass in which the air does not run, as if nothing was due.
    func passInSilence(_ duration: Duration) {
        clock.advance(by: duration)
    }

    func detach(_ index: Int) {
        air.queue.sync { air.detach(controllers[index]) }
    }

    func kill() {
        air.queue.sync { air.conditions.isDead = true }
    }
}

@Suite("An air in real time")
struct AirOnQueueTests {
    private let timedOut: [UInt8] = [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x08]

    @Test("A host whose peer vanishes after a long silence loses the link at the supervision timeout, not at once")
    func peerThatVanishesAfterASilenceIsLostAtTheTimeout() {
        let hosts = RawHosts()
        hosts.connect()
        hosts.passInSilence(.seconds(10))
        hosts.detach(0)
        hosts.pass(.milliseconds(1900))
        #expect(!hosts.received(1).contains(timedOut))
        hosts.pass(.milliseconds(200))
        #expect(hosts.received(1).last == timedOut)
    }

    @Test("An air that dies after a long silence ends its links at the supervision timeout, not at once")
    func airThatDiesAfterASilenceEndsLinksAtTheTimeout() {
        let hosts = RawHosts()
        hosts.connect()
        hosts.passInSilence(.seconds(10))
        hosts.kill()
        hosts.pass(.milliseconds(1900))
        for index in 0...1 { #expect(!hosts.received(index).contains(timedOut)) }
        hosts.pass(.milliseconds(200))
        for index in 0...1 { #expect(hosts.received(index).last == timedOut) }
    }

    @Test("A procedure that begins after a long silence has all of its time")
    func encryptionStartsAfterASilence() {
        let hosts = RawHosts()
        hosts.connect()
        hosts.passInSilence(.seconds(45))
        let key = [UInt8](0..<16)
        // LE Enable Encryption, with a random number and a diversifier of zero.
        let identification = [UInt8](repeating: 0, count: 10)
        hosts.send([0x01, 0x19, 0x20, 0x1C, 0x40, 0x00] + identification + key, to: 1)
        hosts.pass(.milliseconds(200))
        let request: [UInt8] = [0x04, 0x3E, 0x0D, 0x05, 0x40, 0x00] + identification
        #expect(hosts.received(0).last == request)
        // LE Long Term Key Request Reply.
        hosts.send([0x01, 0x1A, 0x20, 0x12, 0x40, 0x00] + key, to: 0)
        hosts.pass(.seconds(1))
        for index in 0...1 { #expect(hosts.received(index).last == [0x04, 0x08, 0x04, 0x00, 0x40, 0x00, 0x01]) }
    }

    @Test("A scan that begins after a long silence lasts for its duration")
    func scanAfterASilenceLastsForItsDuration() {
        let hosts = RawHosts()
        hosts.passInSilence(.seconds(10))
        // LE Set Extended Scan Enable, for 100 ms.
        hosts.send([0x01, 0x42, 0x20, 0x06, 0x01, 0x00, 0x0A, 0x00, 0x00, 0x00], to: 0)
        let timeout: [UInt8] = [0x04, 0x3E, 0x01, 0x11]
        #expect(hosts.received(0).last == [0x04, 0x0E, 0x04, 0x01, 0x42, 0x20, 0x00])
        hosts.pass(.milliseconds(99))
        #expect(!hosts.received(0).contains(timeout))
        hosts.pass(.milliseconds(2))
        #expect(hosts.received(0).last == timeout)
    }
}
