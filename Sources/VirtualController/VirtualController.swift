import BluetoothTypes
import ByteCoding
import HCI
import SMP

/// A Bluetooth LE controller in software: HCI on one side, an ``Air`` on the other.
///
/// It implements these parts of Bluetooth 5.4:
///
/// - legacy, extended and periodic advertising, scanning and synchronizing
/// - links whose packets take the time that a radio would
/// - the data length, PHY, connection parameters, feature and version procedures
/// - encryption and LE Ping
/// - the filter accept list and the resolving list
///
/// Its supported commands and features name them. It answers any other command with Unknown HCI Command.
public final class VirtualController {
    public let configuration: Configuration
    /// Where it is. Signals weaken with the distance; who is too far away is not heard.
    public var position: Position {
        didSet { if position != oldValue { air.conditionsHaveChanged() } }
    }
    /// What is wrong with it.
    public var faults = ControllerFaults.none

    let air: Air
    private(set) var hasVanished = false
    var host: HostInterface
    var random: any RandomNumberGenerator

    // What the host has set, until it resets the controller.
    var randomAddress: DeviceAddress?
    var advertiser = Advertiser()
    var scanner = Scanner()
    var synchronizer = Synchronizer()
    var initiator: Initiation?
    var acceptList: [PeerAddress] = []
    var resolvingList = ResolvingList()
    var linkDefaults: LinkDefaults
    /// Of the key pair that the host has asked for last (Vol 4, Part E, 7.8.36).
    var privateKey: P256PrivateKey?
    /// Links by their places; a link's connection handle is its place and ``firstHandle``.
    var links: [LinkPlace?]
    static let firstHandle: UInt16 = 0x0040
    /// How many of the buffers for the host's ACL packets are taken.
    var packetsHeld = 0
    /// Counts resets, so that what was planned before one is let be.
    private(set) var generation: UInt64 = 0

    /// - Parameters:
    ///   - random: for LE Rand, keys and addresses; a simulation gives a seeded one.
    ///   - emit: takes each packet for the host, with its H4 indicator.
    public init(
        configuration: Configuration,
        air: Air,
        random: any RandomNumberGenerator,
        emit: @escaping (RawSpan) -> Void
    ) {
        self.configuration = configuration
        self.air = air
        self.random = random
        position = configuration.position
        host = HostInterface(emit: emit)
        linkDefaults = LinkDefaults()
        links = Array(repeating: nil, count: configuration.maximumLinks)
        air.join(self)
    }

    /// Takes a packet from the host, with its H4 indicator.
    public func receive(_ packet: RawSpan) {
        guard !hasVanished else { return }
        let body = packet.extracting(droppingFirst: 1)
        switch packet[checked: 0].flatMap(PacketType.init(rawValue:)) {
        case .command: receiveCommand(body)
        case .acl: receiveData(body)
        default: host.statistics.malformedPackets += 1
        }
    }

    /// The controller is gone: it says nothing any more, and its peers lose their links when their supervision timeouts run
    /// out.
    public func vanish() {
        guard !hasVanished else { return }
        hasVanished = true
        forgetEverything()
        air.leave(self)
    }

    /// The controller fails, comes back as if it had been reset, and tells its host by a Hardware Error event.
    public func failWithHardwareError(code: UInt8 = 0) {
        guard !hasVanished else { return }
        forgetEverything()
        tell(HardwareError(hardwareCode: code))
    }

    /// What has gone over HCI so far.
    public var statistics: Statistics { host.statistics }

    /// Stops all that goes on, as Reset does. Peers are told nothing: their links time out.
    func forgetEverything() {
        generation += 1
        stopAdvertising()
        stopListening()
        advertiser = Advertiser()
        scanner = Scanner()
        synchronizer = Synchronizer()
        initiator = nil
        acceptList = []
        resolvingList = ResolvingList()
        randomAddress = nil
        linkDefaults = LinkDefaults()
        privateKey = nil
        for place in links { place?.end.abandon() }
        links = Array(repeating: nil, count: configuration.maximumLinks)
        packetsHeld = 0
        host.reset()
    }

    func nextRandom() -> UInt64 { random.next() }

    /// Calls `action` on the air's time unless the controller has been reset or has vanished by then.
    func schedule(after delay: Duration = .zero, _ action: @escaping (VirtualController) -> Void) {
        let generation = generation
        air.schedule(after: delay) { [weak self] in
            guard let self, !hasVanished, generation == self.generation else { return }
            action(self)
        }
    }
}
