import BluetoothHost
import BluetoothTypes
import ByteCoding
import HCI
import HCITransport
import L2CAP

/// The links of a ``NullRadio``, and the packets on them. Used on the radio's loop only.
///
/// A packet uses only this object and the loop. It does not keep controllers, so controllers keep it.
final class NullAir {
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

    private struct State {
        var scriptedAnswer: NullRadio.ScriptedAnswer?
        /// The state for each host.
        var ports: [HostPort] = []
        /// The buffer for the answers of scripts.
        var answer = PacketBuffer()
        /// The links by handle: the first link has handle 0.
        var links: [Link?] = []
        /// The object itself while a delivery is scheduled, so that it lives until then. The loop's closure refers to
        /// it without keeping it: a weak reference would add a fortieth to the cost of a read.
        var scheduled: NullAir?
        var deliver: @Sendable () -> Void = {}

        subscript(handle: ConnectionHandle) -> Link? {
            let index = Int(handle.rawValue)
            return index < links.count ? links[index] : nil
        }
    }

    /// A reference for the loop's closure.
    private struct Reference {
        unowned let air: NullAir
    }

    let dataLength: Int
    let packetCount: Int
    private let loop: SimulatedEventLoop
    /// The state that each packet needs. No host and no script is called while it is changed, so accesses never
    /// overlap. Release builds do not check that, which keeps the radio's cost small.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var state = State()

    init(dataLength: Int, packetCount: Int, loop: SimulatedEventLoop) {
        self.dataLength = dataLength
        self.packetCount = packetCount
        self.loop = loop
        let reference = LoopConfined(Reference(air: self), to: loop)
        state.deliver = { reference.value.air.deliverAll() }
    }

    var scriptedAnswer: NullRadio.ScriptedAnswer? {
        get { state.scriptedAnswer }
        set {
            let previous = state.scriptedAnswer
            state.scriptedAnswer = newValue
            withExtendedLifetime(previous) {}
        }
    }

    // MARK: Hosts

    /// The number of hosts.
    var hostCount: Int { state.ports.count }

    /// Adds a host.
    func addHost() {
        state.ports.append(HostPort())
    }

    /// Begins or ends the advertising of a host.
    func setAdvertising(_ isAdvertising: Bool, ofHost number: Int) {
        state.ports[number].isAdvertising = isAdvertising
        guard isAdvertising else { return }
        for number in state.ports.indices { connect(from: number) }
    }

    /// Makes a host seek a peer.
    func seek(_ peer: PeerAddress?, fromHost number: Int) {
        state.ports[number].soughtPeer = peer
        connect(from: number)
    }

    /// Ends the search of a host, and returns the peer that it sought.
    func endSearch(ofHost number: Int) -> PeerAddress? {
        state.ports[number].soughtPeer.take()
    }

    // MARK: Links

    /// Connects a scripted central to the first host.
    func connectScriptedCentral() -> ConnectionHandle {
        let handle = addLink(Link(central: .script, peripheral: .host(0)))
        tellOfConnection(handle, role: .peripheral, peer: address(ofCentral: handle), to: 0)
        return handle
    }

    /// Creates the link that a host requested, once there is a peer for it.
    private func connect(from number: Int) {
        guard let peer = state.ports[number].soughtPeer else { return }
        let party: Party
        if state.scriptedAnswer != nil {
            party = .script
        } else if let other = state.ports.indices.first(where: { $0 != number && state.ports[$0].isAdvertising }) {
            party = .host(other)
            state.ports[other].isAdvertising = false
        } else {
            return
        }
        state.ports[number].soughtPeer = nil
        let handle = addLink(Link(central: .host(number), peripheral: party))
        tellOfConnection(handle, role: .central, peer: peer, to: number)
        if case .host(let other) = party {
            tellOfConnection(handle, role: .peripheral, peer: address(ofCentral: handle), to: other)
        }
    }

    func disconnect(_ handle: ConnectionHandle, by number: Int, reason: HCI.ErrorCode) {
        guard let link = state[handle] else { return }
        state.links[Int(handle.rawValue)] = nil
        queue(
            DisconnectionComplete(connectionHandle: handle, reason: .connectionTerminatedByLocalHost),
            toHost: number
        )
        if case .host(let other) = link.peer(of: .host(number)) {
            queue(DisconnectionComplete(connectionHandle: handle, reason: reason), toHost: other)
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
        queue(
            LEConnectionComplete(
                connectionHandle: handle,
                role: role,
                peerAddress: peer,
                connectionInterval: 6,
                peripheralLatency: 0,
                supervisionTimeout: 100
            ),
            toHost: number
        )
    }

    /// Sends an Attribute PDU from the scripted end of a link.
    func send(_ pdu: RawSpan, on handle: ConnectionHandle) {
        guard let link = state[handle], case .host(let number) = link.peer(of: .script) else { return }
        queueAttributePDU(on: handle, toHost: number) { $0.append(pdu) }
        requestDelivery()
    }

    /// Delivers a packet to a host, with its H4 indicator, before the call returns.
    func inject(_ packet: RawSpan, toHost number: Int) {
        state.ports[number].onPacket?(packet)
    }

    func queue(_ event: some EventParameters, toHost number: Int) {
        queueEvent(toHost: number) { event.encodePacket(into: &$0) }
    }

    // MARK: Packets

    /// Sets or removes the receiver of a host that has opened or closed its controller.
    func attach(_ onPacket: (@Sendable (RawSpan) -> Void)?, toHost number: Int) {
        state.ports[number].onPacket = onPacket
    }

    /// Takes an ACL packet, without its H4 indicator, from a host.
    func receive(_ packet: RawSpan, fromHost number: Int) {
        guard let acl = try? ACLPacket(decoding: packet), let link = state[acl.header.connectionHandle] else {
            return
        }
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
        let air = state.scheduled.take()
        for number in state.ports.indices {
            guard let packets = state.ports[number].takePackets() else { continue }
            // The port is not accessed during the delivery, because the host sends packets from there.
            if let onPacket = state.ports[number].onPacket { packets.forEach(onPacket) }
            state.ports[number].giveBack(packets)
        }
        withExtendedLifetime(air) {}
    }
}
