import BLE
import BLEByteCoding
import BLEHCI
import BLEHCITransport
import BLEVirtualController
import BluetoothHost
import BluetoothTypes
import Synchronization

/// Controllers that only forward packets, in one thread: a packet that a host sends on a link arrives at the other end
/// at once.
///
/// The radio has no air, no delays and no loss, and allocates no memory for a packet. So a measurement measures hosts
/// and not a radio. To test how a host behaves, use a ``World``.
///
/// ```swift
/// let radio = NullRadio()
/// try radio.run {
///     let server = try await radio.openAdapter()
///     let client = try await radio.openAdapter()
///     …
///     let peer = try await client.central.connect(to: radio.address(ofPeripheral: 0))
/// }
/// ```
///
/// It holds one host or two. A host that connects reaches the other host, once that host advertises, under any address.
/// So the two may have many links, and each host sees the other as many devices. Hosts that pair connect by the address
/// of the other adapter, which is part of what they check. If ``scriptedAnswer`` is set, links end at peers that only
/// answer requests, so that one host is measured alone.
///
/// At most ``linkLimit`` links are open at a time. The controllers refuse a host's further connection attempts.
///
/// Like a ``World``, it belongs to the thread that runs it.
public final class NullRadio: Sendable {
    /// Answers an Attribute PDU in place of a peer: appends the answer to the buffer. If it appends nothing, there is
    /// no answer.
    public typealias ScriptedAnswer = @Sendable (_ pdu: RawSpan, _ answer: inout PacketBuffer) -> Void

    /// Maximum number of open links: one for each connection handle, 0x0000 to 0x0EFF (Vol 4, Part E, 5.3.1).
    public static let linkLimit = 0x0F00

    /// The maximum data length of an ACL packet, in bytes.
    public let dataLength: Int
    /// The number of ACL packet buffers that a controller reports.
    public let packetCount: Int
    /// The features of the controllers. With periodic advertising, a host can synchronize with trains;
    /// ``inject(_:toHost:)`` delivers the events of the controller.
    public let features: LEFeatures
    /// Answers the packets of a host on links that it creates from now on; nil if the links end at the other host.
    public var scriptedAnswer: ScriptedAnswer? {
        get { air.scriptedAnswer }
        set { air.scriptedAnswer = newValue }
    }
    /// The adapters that were opened, in order.
    public var adapters: [Adapter] { opened.withLock { $0 } }

    /// Its time stands still while there is work, so it has no limit for the work of one instant.
    package let loop = SimulatedEventLoop(turnLimit: .max)
    private let confined: LoopConfined<NullAir>
    private var air: NullAir { confined.value }
    private let opened = Mutex<[Adapter]>([])
    private let random = Mutex(SeededGenerator(seed: 0))

    /// - Parameters:
    ///   - dataLength: the maximum data length of an ACL packet, in bytes; at least 27.
    ///   - packetCount: the number of ACL packet buffers that a controller reports; 1 to 255.
    ///   - features: the features of the controllers.
    public init(dataLength: Int = 251, packetCount: Int = 20, features: LEFeatures = []) {
        self.features = features
        self.dataLength = min(max(dataLength, 27), 0xFFFF)
        self.packetCount = min(max(packetCount, 1), 0xFF)
        let air = NullAir(dataLength: self.dataLength, packetCount: self.packetCount, loop: loop)
        confined = LoopConfined(air, to: loop)
    }

    // MARK: Hosts

    /// Opens an adapter.
    ///
    /// - Parameter configure: changes the configuration of the adapter.
    /// - Throws: ``/BLE/BLEError/invalidArgument(_:)`` if the configuration names a directory for the state or requires
    ///   the state; the other errors of `Adapter.open`.
    /// - Precondition: there are fewer than two adapters.
    public func openAdapter(
        _ configure: (inout Adapter.Configuration) -> Void = { _ in }
    ) async throws(BLEError) -> Adapter {
        let number = air.hostCount
        precondition(number < 2, "a null radio holds two hosts")
        let controller = NullController(
            number: number,
            address: NullAir.address(ofHost: number),
            features: features,
            air: confined
        )
        var configuration = Adapter.Configuration()
        configure(&configuration)
        try configuration.requireNoSavedState()
        air.addHost()
        let adapter = try await Adapter.open(
            on: loop,
            configuration: configuration,
            random: random.withLock { $0.split() }
        ) {
            controller
        }
        opened.withLock { $0.append(adapter) }
        return adapter
    }

    /// The executor for tasks that use the hosts: `Task(executorPreference: radio.taskExecutor) { … }`.
    public var taskExecutor: any TaskExecutor { loop.taskExecutor }

    /// Runs `body` and all work of the hosts in this thread until `body` returns.
    ///
    /// - Parameters:
    ///   - limit: maximum time of the loop. It passes only while there is no work.
    ///   - body: the calls of the apps.
    /// - Throws: any error of `body`; ``UnfinishedRun`` if it has not returned.
    public func run<Value: Sendable>(
        limit: Duration = .seconds(600),
        _ body: @escaping @Sendable () async throws -> Value
    ) throws -> Value {
        try loop.run(limit: limit, whatIsAwaited: whatIsAwaited, body: body)
    }

    /// The pending operations of the adapters, one line each. The host that was opened first has the number 0.
    private func whatIsAwaited() -> [String] {
        loop.whatIsAwaited(by: adapters.enumerated().map { (name: "host \($0.offset)", adapter: $0.element) })
    }

    /// Waits until all work is done that does not need time to pass.
    public func settle() async {
        let loop = loop
        await withCheckedContinuation { continuation in
            // The loop's time does not pass while any work is ready.
            loop.makeAlarm { continuation.resume() }.set(loop.now)
        }
    }

    /// Closes the adapters. The radio must not be used afterwards.
    public func close() {
        let adapters = adapters
        try? run { for adapter in adapters { await adapter.close() } }
        opened.withLock { $0 = [] }
    }

    // MARK: Links

    /// An address to connect to: each number represents a separate device.
    public func address(ofPeripheral number: Int) -> DeviceAddress {
        DeviceAddress(0x5045_0000_0000 + UInt64(number), isRandom: false)
    }

    /// Connects a scripted central to the first host. ``send(_:on:)`` sends its requests.
    ///
    /// - Precondition: fewer than ``linkLimit`` links are open.
    public func connectScriptedCentral() -> ConnectionHandle {
        air.connectScriptedCentral()
    }

    /// Sends an Attribute PDU from the scripted end of a link. The PDU must fit into one ACL packet.
    public func send(_ pdu: RawSpan, on handle: ConnectionHandle) {
        air.send(pdu, on: handle)
    }

    /// Delivers a packet from its controller to a host, with its H4 indicator, before the call returns.
    ///
    /// - Parameters:
    ///   - packet: the packet, from its H4 indicator on.
    ///   - number: the host: 0 is the host that was opened first.
    public func inject(_ packet: RawSpan, toHost number: Int = 0) {
        air.inject(packet, toHost: number)
    }
}
