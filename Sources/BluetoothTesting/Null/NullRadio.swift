import BLE
import BluetoothHost
import BluetoothTypes
import ByteCoding
import HCI
import VirtualController

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
/// So the two may have many links, and each host sees the other as many devices. If ``scriptedAnswer`` is set, links
/// end at peers that only answer requests, so that one host is measured alone.
///
/// Like a ``World``, it belongs to the thread that runs it.
public final class NullRadio: @unchecked Sendable {
    // @unchecked: used on the thread that runs it only.

    /// Answers an Attribute PDU in place of a peer: appends the answer to the buffer. If it appends nothing, there is
    /// no answer.
    public typealias ScriptedAnswer = @Sendable (_ pdu: RawSpan, _ answer: inout PacketBuffer) -> Void

    /// The end of a link: a host, or a script.
    enum Party: Equatable {
        case host(Int)
        case script
    }

    struct Link {
        let central: Party
        let peripheral: Party

        func peer(of party: Party) -> Party { party == central ? peripheral : central }
    }

    /// The maximum data length of an ACL packet, in bytes.
    public let dataLength: Int
    /// The number of ACL packet buffers that a controller reports.
    public let packetCount: Int
    /// Answers the packets of a host on links that it creates from now on; nil if the links end at the other host.
    public var scriptedAnswer: ScriptedAnswer? {
        get { state.scriptedAnswer }
        set {
            let previous = state.scriptedAnswer
            state.scriptedAnswer = newValue
            withExtendedLifetime(previous) {}
        }
    }
    /// The adapters that were opened, in order.
    public private(set) var adapters: [Adapter] = []

    package let loop = SimulatedEventLoop()
    private var random = SeededGenerator(seed: 0)
    /// The state that each packet needs. No host and no script is called while it is changed, so accesses never
    /// overlap. Release builds do not check that, which keeps the radio's cost small.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var state = State()

    private struct State {
        var scriptedAnswer: ScriptedAnswer?
        var controllers: [NullController] = []
        /// The state for the host of each controller.
        var ports: [HostPort] = []
        /// The buffer for the answers of scripts.
        var answer = PacketBuffer()
        /// The links by handle: the first link has handle 0.
        var links: [Link?] = []
        /// The radio itself while a delivery is scheduled, so that it lives until then. The loop's closure refers to it
        /// without keeping it: a weak reference would add a fortieth to the cost of a read.
        var scheduled: NullRadio?
        var deliver: @Sendable () -> Void = {}

        subscript(handle: ConnectionHandle) -> Link? {
            let index = Int(handle.rawValue)
            return index < links.count ? links[index] : nil
        }
    }

    /// - Parameters:
    ///   - dataLength: the maximum data length of an ACL packet, in bytes; at least 27.
    ///   - packetCount: the number of ACL packet buffers that a controller reports; 1 to 255.
    public init(dataLength: Int = 251, packetCount: Int = 20) {
        self.dataLength = min(max(dataLength, 27), 0xFFFF)
        self.packetCount = min(max(packetCount, 1), 0xFF)
        state.deliver = { [unowned self] in deliverAll() }
    }

    // MARK: Hosts

    /// Opens an adapter.
    ///
    /// - Parameter configure: changes the configuration of the adapter.
    /// - Precondition: there are fewer than two adapters.
    public func openAdapter(
        _ configure: (inout Adapter.Configuration) -> Void = { _ in }
    ) async throws(BLEError) -> Adapter {
        precondition(state.controllers.count < 2, "a null radio holds two hosts")
        let controller = NullController(
            number: state.controllers.count,
            address: DeviceAddress(0x4E55_4C00_0001 + UInt64(state.controllers.count), isRandom: false),
            radio: self
        )
        state.controllers.append(controller)
        state.ports.append(HostPort())
        var configuration = Adapter.Configuration()
        configure(&configuration)
        let adapter = try await Adapter.open(on: loop, configuration: configuration, random: random.split()) {
            controller
        }
        adapters.append(adapter)
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
        try loop.run(limit: limit, whatIsAwaited: { [] }, body: body)
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
        self.adapters = []
        state.controllers = []
    }

    // MARK: Links

    /// An address to connect to: each number represents a separate device.
    public func address(ofPeripheral number: Int) -> DeviceAddress {
        DeviceAddress(0x5045_0000_0000 + UInt64(number), isRandom: false)
    }

    /// Connects a scripted central to the first host. ``send(_:on:)`` sends its requests.
    public func connectScriptedCentral() -> ConnectionHandle {
        let handle = addLink(Link(central: .script, peripheral: .host(0)))
        tellOfConnection(handle, role: .peripheral, peer: address(ofCentral: handle), to: 0)
        return handle
    }

    /// Sends an Attribute PDU from the scripted end of a link. The PDU must fit into one ACL packet.
    public func send(_ pdu: RawSpan, on handle: ConnectionHandle) {
        guard let link = state[handle], case .host(let number) = link.peer(of: .script) else { return }
        queueAttributePDU(on: handle, toHost: number) { $0.append(pdu) }
        requestDelivery()
    }

    /// Delivers a packet from its controller to a host, with its H4 indicator, before the call returns.
    ///
    /// - Parameters:
    ///   - packet: the packet, from its H4 indicator on.
    ///   - number: the host: 0 is the host that was opened first.
    public func inject(_ packet: RawSpan, toHost number: Int = 0) {
        state.ports[number].onPacket?(packet)
    }

    /// Creates the link that a host requested, once there is a peer for it.
    func connect(from number: Int) {
        let central = state.controllers[number]
        guard let peer = central.soughtPeer else { return }
        let party: Party
        if state.scriptedAnswer != nil {
            party = .script
        } else if let other = state.controllers.first(where: { $0 !== central && $0.isAdvertising }) {
            party = .host(other.number)
            other.isAdvertising = false
        } else {
            return
        }
        central.soughtPeer = nil
        let handle = addLink(Link(central: .host(number), peripheral: party))
        tellOfConnection(handle, role: .central, peer: peer, to: number)
        if case .host(let other) = party {
            tellOfConnection(handle, role: .peripheral, peer: address(ofCentral: handle), to: other)
        }
    }

    func advertisingStarted() {
        for controller in state.controllers { connect(from: controller.number) }
    }

    func disconnect(_ handle: ConnectionHandle, by number: Int, reason: ErrorCode) {
        guard let link = state[handle] else { return }
        state.links[Int(handle.rawValue)] = nil
        state.controllers[number].queue(
            DisconnectionComplete(connectionHandle: handle, reason: .connectionTerminatedByLocalHost)
        )
        if case .host(let other) = link.peer(of: .host(number)) {
            state.controllers[other].queue(DisconnectionComplete(connectionHandle: handle, reason: reason))
        }
    }

    private func address(ofCentral handle: ConnectionHandle) -> PeerAddress {
        PeerAddress(DeviceAddress(0x4345_0000_0000 + UInt64(handle.rawValue), isRandom: false))
    }

    private func addLink(_ link: Link) -> ConnectionHandle {
        state.links.append(link)
        return ConnectionHandle(UInt16(state.links.count - 1))
    }

    private func tellOfConnection(_ handle: ConnectionHandle, role: Role, peer: PeerAddress, to number: Int) {
        state.controllers[number].queue(
            LEConnectionComplete(
                connectionHandle: handle,
                role: role,
                peerAddress: peer,
                connectionInterval: 6,
                peripheralLatency: 0,
                supervisionTimeout: 100
            )
        )
    }

    // MARK: Packets

    /// Sets or removes the receiver of a host that has opened or closed its controller.
    func attach(_ onPacket: (@Sendable (RawSpan) -> Void)?, toHost number: Int) {
        state.ports[number].onPacket = onPacket
    }

    /// Takes an ACL packet, without its H4 indicator, from a host.
    func receive(_ packet: RawSpan, fromHost number: Int) {
        guard let acl = try? ACLPacket(decoding: packet), let link = state[acl.header.connectionHandle] else { return }
        let handle = acl.header.connectionHandle
        switch link.peer(of: .host(number)) {
        case .host(let other): state.ports[other].queueACL(acl.payload, of: acl.header)
        case .script: receiveByScript(acl.payload, on: handle, ofHost: number)
        }
        state.ports[number].countTaken(on: handle)
        requestDelivery()
    }

    private func receiveByScript(_ frame: RawSpan, on handle: ConnectionHandle, ofHost number: Int) {
        // Scripts do not answer fragmented frames or frames of other channels.
        guard let scriptedAnswer = state.scriptedAnswer, frame.byteCount >= 4, frame[checked: 2] == 4,
            frame[checked: 3] == 0
        else { return }
        let pdu = frame.extracting(droppingFirst: 4)
        queueAttributePDU(on: handle, toHost: number) { scriptedAnswer(pdu, &$0) }
    }

    /// Queues the Attribute PDU that `encode` appends; nothing if it appends nothing.
    private func queueAttributePDU(
        on handle: ConnectionHandle,
        toHost number: Int,
        _ encode: (inout PacketBuffer) -> Void
    ) {
        // `encode` may cause other answers to be written while it runs.
        var pdu = PacketBuffer(capacity: 0, headroom: 0)
        swap(&pdu, &state.answer)
        pdu.reset()
        encode(&pdu)
        if !pdu.isEmpty { state.ports[number].queueAttributePDU(&pdu, on: handle) }
        state.answer = pdu
    }

    /// Queues the event that `encode` appends for a host. `encode` must do nothing else, because the packets are being
    /// changed.
    func queueEvent(toHost number: Int, _ encode: (inout PacketBuffer) -> Void) {
        state.ports[number].queueEvent(encode)
        requestDelivery()
    }

    /// Schedules the delivery of the queued packets after the current work of the loop.
    private func requestDelivery() {
        guard state.scheduled == nil else { return }
        state.scheduled = self
        loop.execute(state.deliver)
    }

    private func deliverAll() {
        let radio = state.scheduled.take()
        for number in state.ports.indices {
            guard let packets = state.ports[number].takePackets() else { continue }
            // The port is not accessed during the delivery, because the host sends packets from there.
            if let onPacket = state.ports[number].onPacket { packets.forEach(onPacket) }
            state.ports[number].giveBack(packets)
        }
        withExtendedLifetime(radio) {}
    }
}
