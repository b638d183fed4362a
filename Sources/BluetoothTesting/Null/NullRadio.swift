import BLE
import BluetoothHost
import BluetoothTypes
import ByteCoding
import HCI
import VirtualController

/// Controllers that do nothing but hand on, in one thread: what a host sends on a link is at its other end at once.
///
/// There is no air, no time that passes and no loss, and no memory is allocated for a packet, so that what is measured here
/// is hosts and not a radio. For how a host behaves, take a ``World``.
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
/// It holds one host or two. A host that connects reaches the other host, once that advertises, under whatever address it
/// asks for: so the two may have many links, and each host takes the other for as many devices. Where
/// ``scriptedAnswer`` is set, links end at peers that only answer requests instead, so that one host is measured by itself.
///
/// Like a ``World``, it belongs to the one thread that runs it. That what is on each packet's way is not checked for
/// overlapping accesses keeps it small beside the hosts: no host and no script is called while any of it is changed.
public final class NullRadio: @unchecked Sendable {
    // @unchecked: used on the thread that runs it only.

    /// Answers an Attribute PDU in a peer's place: appends the answer to what the buffer holds already. Where nothing is
    /// appended, there is no answer.
    public typealias ScriptedAnswer = @Sendable (_ pdu: RawSpan, _ answer: inout PacketBuffer) -> Void

    /// Where a link ends: at a host, or at a script.
    enum Party: Equatable {
        case host(Int)
        case script
    }

    struct Link {
        let central: Party
        let peripheral: Party

        func peer(of party: Party) -> Party { party == central ? peripheral : central }
    }

    /// The longest data of an ACL packet, in octets.
    public let dataLength: Int
    /// How many ACL packets a controller says that it holds.
    public let packetCount: Int
    /// Answers what a host sends on links that it makes from now on; nil where they end at the other host.
    @exclusivity(unchecked)
    public var scriptedAnswer: ScriptedAnswer?
    /// The adapters that were opened, in order.
    public private(set) var adapters: [Adapter] = []

    package let loop = SimulatedEventLoop()
    private var random = SeededGenerator(seed: 0)
    @exclusivity(unchecked)
    private(set) var controllers: [NullController] = []
    /// What there is for the host of each controller.
    @exclusivity(unchecked)
    private var ports: [HostPort] = []
    /// What scripts write their answers to.
    private var answer = PacketBuffer()
    /// By handle: the first link's is 0.
    @exclusivity(unchecked)
    private var links: [Link?] = []
    @exclusivity(unchecked)
    private var isDeliveryDue = false
    @exclusivity(unchecked)
    private var deliver: @Sendable () -> Void = {}

    /// - Parameters:
    ///   - dataLength: the longest data of an ACL packet, in octets; at least 27.
    ///   - packetCount: how many ACL packets a controller says that it holds; 1 to 255.
    public init(dataLength: Int = 251, packetCount: Int = 20) {
        self.dataLength = min(max(dataLength, 27), 0xFFFF)
        self.packetCount = min(max(packetCount, 1), 0xFF)
        deliver = { [unowned self] in deliverAll() }
    }

    // MARK: Hosts

    /// Brings up a host.
    ///
    /// - Parameter configure: changes what the adapter is opened with.
    /// - Precondition: there are less than two.
    public func openAdapter(
        _ configure: (inout Adapter.Configuration) -> Void = { _ in }
    ) async throws(BLEError) -> Adapter {
        precondition(controllers.count < 2, "a null radio holds two hosts")
        let controller = NullController(
            number: controllers.count,
            address: DeviceAddress(0x4E55_4C00_0001 + UInt64(controllers.count), isRandom: false),
            radio: self
        )
        controllers.append(controller)
        ports.append(HostPort())
        var configuration = Adapter.Configuration()
        configure(&configuration)
        let adapter = try await Adapter.open(on: loop, configuration: configuration, random: random.split()) {
            controller
        }
        adapters.append(adapter)
        return adapter
    }

    /// Runs tasks with the hosts: `Task(executorPreference: radio.taskExecutor) { … }`.
    public var taskExecutor: any TaskExecutor { loop.taskExecutor }

    /// Runs `body` in this thread, with all that the hosts do meanwhile, until it returns.
    ///
    /// - Parameter limit: how much of the loop's time it may take; that passes only while nothing is to be done.
    /// - Throws: what `body` throws; ``UnfinishedRun`` where it has not returned.
    public func run<Value: Sendable>(
        limit: Duration = .seconds(600),
        _ body: @escaping @Sendable () async throws -> Value
    ) throws -> Value {
        try loop.run(limit: limit, whatIsAwaited: { [] }, body: body)
    }

    /// Waits until all has been done that can be without time passing.
    public func settle() async {
        let loop = loop
        await withCheckedContinuation { continuation in
            // The loop's time stands still for as long as anything is ready.
            loop.makeAlarm { continuation.resume() }.set(loop.now)
        }
    }

    /// Closes the adapters. The radio is not to be used afterwards.
    public func close() {
        let adapters = adapters
        try? run { for adapter in adapters { await adapter.close() } }
        self.adapters = []
        controllers = []
    }

    // MARK: Links

    /// An address to connect to: each number stands for a device of its own.
    public func address(ofPeripheral number: Int) -> DeviceAddress {
        DeviceAddress(0x5045_0000_0000 + UInt64(number), isRandom: false)
    }

    /// Connects a scripted central to the first host; its requests are given by ``send(_:on:)``.
    public func connectScriptedCentral() -> ConnectionHandle {
        let handle = addLink(Link(central: .script, peripheral: .host(0)))
        tellOfConnection(handle, role: .peripheral, peer: address(ofCentral: handle), to: 0)
        return handle
    }

    /// Sends an Attribute PDU from the scripted end of a link; not longer than fits into one ACL packet.
    public func send(_ pdu: RawSpan, on handle: ConnectionHandle) {
        guard let link = self[handle], case .host(let number) = link.peer(of: .script) else { return }
        queueAttributePDU(on: handle, toHost: number) { $0.append(pdu) }
        requestDelivery()
    }

    /// Hands a host a packet from its controller, with its H4 indicator, before this returns.
    ///
    /// - Parameter number: the host: 0 is that which was opened first.
    public func inject(_ packet: RawSpan, toHost number: Int = 0) {
        ports[number].onPacket?(packet)
    }

    /// Makes the link that a host asks for, once there is somebody at its other end.
    func connect(from number: Int) {
        let central = controllers[number]
        guard let peer = central.soughtPeer else { return }
        let party: Party
        if scriptedAnswer != nil {
            party = .script
        } else if let other = controllers.first(where: { $0 !== central && $0.isAdvertising }) {
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
        for controller in controllers { connect(from: controller.number) }
    }

    func disconnect(_ handle: ConnectionHandle, by number: Int, reason: ErrorCode) {
        guard let link = self[handle] else { return }
        links[Int(handle.rawValue)] = nil
        controllers[number].queue(
            DisconnectionComplete(connectionHandle: handle, reason: .connectionTerminatedByLocalHost)
        )
        if case .host(let other) = link.peer(of: .host(number)) {
            controllers[other].queue(DisconnectionComplete(connectionHandle: handle, reason: reason))
        }
    }

    private func address(ofCentral handle: ConnectionHandle) -> PeerAddress {
        PeerAddress(DeviceAddress(0x4345_0000_0000 + UInt64(handle.rawValue), isRandom: false))
    }

    private subscript(handle: ConnectionHandle) -> Link? {
        let index = Int(handle.rawValue)
        return index < links.count ? links[index] : nil
    }

    private func addLink(_ link: Link) -> ConnectionHandle {
        links.append(link)
        return ConnectionHandle(UInt16(links.count - 1))
    }

    private func tellOfConnection(_ handle: ConnectionHandle, role: Role, peer: PeerAddress, to number: Int) {
        controllers[number].queue(
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

    // MARK: The way of a packet

    /// A host has opened its controller, or closed it.
    func attach(_ onPacket: (@Sendable (RawSpan) -> Void)?, toHost number: Int) {
        ports[number].onPacket = onPacket
    }

    /// Takes an ACL packet, without its H4 indicator, from a host.
    func receive(_ packet: RawSpan, fromHost number: Int) {
        guard let acl = try? ACLPacket(decoding: packet), let link = self[acl.header.connectionHandle] else { return }
        let handle = acl.header.connectionHandle
        switch link.peer(of: .host(number)) {
        case .host(let other): ports[other].queueACL(acl.payload, of: acl.header)
        case .script: receiveByScript(acl.payload, on: handle, ofHost: number)
        }
        ports[number].countTaken(on: handle)
        requestDelivery()
    }

    private func receiveByScript(_ frame: RawSpan, on handle: ConnectionHandle, ofHost number: Int) {
        // What comes in several fragments, or on other channels, no script has an answer for.
        guard let scriptedAnswer, frame.byteCount >= 4, frame[checked: 2] == 4, frame[checked: 3] == 0 else { return }
        let pdu = frame.extracting(droppingFirst: 4)
        queueAttributePDU(on: handle, toHost: number) { scriptedAnswer(pdu, &$0) }
    }

    /// Queues the Attribute PDU that `encode` appends; nothing where it appends nothing.
    private func queueAttributePDU(
        on handle: ConnectionHandle,
        toHost number: Int,
        _ encode: (inout PacketBuffer) -> Void
    ) {
        // Whoever writes it may have other answers written meanwhile.
        var pdu = PacketBuffer(capacity: 0, headroom: 0)
        swap(&pdu, &answer)
        pdu.reset()
        encode(&pdu)
        if !pdu.isEmpty { ports[number].queueAttributePDU(&pdu, on: handle) }
        answer = pdu
    }

    /// Queues the event that `encode` appends for a host; it does nothing else, for the packets are being changed.
    func queueEvent(toHost number: Int, _ encode: (inout PacketBuffer) -> Void) {
        ports[number].queueEvent(encode)
        requestDelivery()
    }

    /// Has the packets that are queued delivered after what the loop does now.
    private func requestDelivery() {
        guard !isDeliveryDue else { return }
        isDeliveryDue = true
        loop.execute(deliver)
    }

    private func deliverAll() {
        isDeliveryDue = false
        for number in ports.indices {
            guard let packets = ports[number].takePackets() else { continue }
            // Nothing of the port's is held meanwhile: the host sends packets from in there.
            if let onPacket = ports[number].onPacket { packets.forEach(onPacket) }
            ports[number].giveBack(packets)
        }
    }
}
