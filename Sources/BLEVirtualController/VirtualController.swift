import BLEByteCoding
import BLEHCI
import BLESMP
import BluetoothTypes

/// A Bluetooth LE controller in software: HCI on one side, an ``Air`` on the other.
///
/// It implements these parts of Bluetooth 6.0:
///
/// - Legacy, extended and periodic advertising, scanning and synchronizing.
/// - The transfer of synchronizations, and the periodic advertiser list.
/// - Periodic advertising with responses, as advertiser and as responder, and connections to responders.
/// - Links whose packets take the air time of a radio.
/// - The data length, PHY, connection parameters, feature and version procedures.
/// - Subrated connections, power control and path loss monitoring.
/// - Encryption and LE Ping.
/// - Connected and broadcast isochronous groups and streams.
/// - Channel Sounding, whose procedures it reports as aborted: there is no radio to measure.
/// - The filter accept list and the resolving list.
///
/// Its supported commands and features name them. It answers any other command with Unknown HCI Command.
public final class VirtualController {
    /// The properties with which the controller was created, all in their ranges.
    public let configuration: Configuration
    /// The position of the controller. Signals weaken with the distance; a controller too far away is not heard.
    public var position: Position {
        didSet { if position != oldValue { air.conditionsHaveChanged() } }
    }
    /// The faults of the controller.
    public var faults = ControllerFaults.none

    let air: Air
    private(set) var hasVanished = false
    var host: HostInterface
    var random: any RandomNumberGenerator

    // State that the host sets, until it resets the controller.
    var randomAddress: DeviceAddress?
    var advertiser = Advertiser()
    var scanner = Scanner()
    var synchronizer = Synchronizer()
    var initiator: Initiation?
    var isochronous = IsochronousState()
    var acceptList: [PeerAddress] = []
    var resolvingList = ResolvingList()
    var linkDefaults: LinkDefaults
    var hostFeatures: LEFeatures = []
    /// The private key of the last public key that the host has requested (Vol 4, Part E, 7.8.36).
    var privateKey: P256PrivateKey?
    /// The links by their places. A link's connection handle is its place plus ``firstHandle``.
    var links: [LinkPlace?]
    static let firstHandle: UInt16 = 0x0040
    /// The number of used buffers for the host's ACL packets.
    var packetsHeld = 0
    /// Incremented on every reset. Actions scheduled before a reset are ignored.
    private(set) var generation: UInt64 = 0

    /// Creates a controller on an air.
    ///
    /// - Parameters:
    ///   - configuration: the limits, features and position of the controller.
    ///   - air: the air that carries its packets.
    ///   - random: the generator for LE Rand, keys and addresses. A simulation passes a generator with a seed.
    ///   - emit: receives each packet for the host, with its H4 indicator.
    public init(
        configuration: Configuration,
        air: Air,
        random: any RandomNumberGenerator,
        emit: @escaping (RawSpan) -> Void
    ) {
        let configuration = configuration.limited
        self.configuration = configuration
        self.air = air
        self.random = random
        position = configuration.position
        host = HostInterface(emit: emit)
        linkDefaults = LinkDefaults()
        links = Array(repeating: nil, count: configuration.maximumLinks)
        air.join(self)
    }

    /// Handles a packet from the host, with its H4 indicator.
    public func receive(_ packet: RawSpan) {
        guard !hasVanished else { return }
        let body = packet.extracting(droppingFirst: 1)
        switch packet[checked: 0].flatMap(PacketType.init(rawValue:)) {
        case .command: receiveCommand(body)
        case .acl: receiveData(body)
        case .iso: receiveISO(body)
        default: host.statistics.malformedPackets += 1
        }
    }

    /// Removes the controller from the air. It sends no more packets, and its peers lose their links when their
    /// supervision timeouts expire.
    public func vanish() {
        guard !hasVanished else { return }
        hasVanished = true
        forgetEverything()
        air.leave(self)
    }

    /// Resets the controller after a simulated failure, and reports it to the host by a Hardware Error event.
    public func failWithHardwareError(code: UInt8 = 0) {
        guard !hasVanished else { return }
        forgetEverything()
        tell(HardwareError(hardwareCode: code))
    }

    /// Sets the power with which the controller sends on its links, as a device does to save energy. Peers that watch
    /// the power are informed.
    ///
    /// - Parameter power: in dBm; limited to the range of the configuration.
    public func setTransmitPower(_ power: Int8) {
        for place in links { place?.end.setPower(power) }
    }

    /// Counters of HCI traffic.
    public var statistics: Statistics { host.statistics }

    /// Stops all activities, as Reset does. Peers are not informed: their links time out.
    func forgetEverything() {
        generation += 1
        stopAdvertising()
        stopListening()
        advertiser = Advertiser()
        scanner = Scanner()
        synchronizer = Synchronizer()
        initiator = nil
        abandonStreams()
        acceptList = []
        resolvingList = ResolvingList()
        randomAddress = nil
        linkDefaults = LinkDefaults()
        hostFeatures = []
        privateKey = nil
        for place in links { place?.end.abandon() }
        links = Array(repeating: nil, count: configuration.maximumLinks)
        packetsHeld = 0
        host.reset()
    }

    func nextRandom() -> UInt64 { random.next() }

    /// Runs `action` after a delay of the air's time, unless the controller has been reset or has vanished by then.
    ///
    /// - Parameter timer: a timer whose pending action is replaced; nil for an action that cannot be cancelled.
    func schedule(
        after delay: Duration = .zero,
        on timer: Air.Timer? = nil,
        _ action: @escaping (VirtualController) -> Void
    ) {
        let generation = generation
        let run: () -> Void = { [weak self] in
            guard let self, !hasVanished, generation == self.generation else { return }
            action(self)
        }
        if let timer { air.set(timer, at: air.now + delay, run) } else { air.schedule(after: delay, run) }
    }
}
