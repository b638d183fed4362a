import BLEByteCoding
import BLEHCI
import BLEHCITransport
import BLEL2CAP
import BluetoothHost
import BluetoothTypes
import DequeModule

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

    /// What several packets change.
    private struct Traffic {
        /// The state for each host.
        var ports: [HostPort] = []
        /// The links by handle: the first link has handle 0.
        private var links: [Link?] = []
        /// The handles of links that have ended, oldest first. They are used again once every handle was used.
        private var freeHandles: Deque<UInt16> = []

        /// Whether each handle has an open link.
        var isFull: Bool { links.count == NullRadio.linkLimit && freeHandles.isEmpty }

        subscript(handle: ConnectionHandle) -> Link? {
            let index = Int(handle.rawValue)
            return index < links.count ? links[index] : nil
        }

        /// Adds a link and returns its handle.
        ///
        /// - Precondition: not every handle has an open link.
        mutating func add(_ link: Link) -> ConnectionHandle {
            if links.count < NullRadio.linkLimit {
                links.append(link)
                return ConnectionHandle(UInt16(links.count - 1))
            }
            guard let handle = freeHandles.popFirst() else {
                preconditionFailure("a null radio has at most \(NullRadio.linkLimit) open links")
            }
            links[Int(handle)] = link
            return ConnectionHandle(handle)
        }

        /// Removes and returns a link.
        mutating func removeLink(_ handle: ConnectionHandle) -> Link? {
            guard let link = self[handle] else { return nil }
            links[Int(handle.rawValue)] = nil
            freeHandles.append(handle.rawValue)
            return link
        }

        /// Ends the search of a host if there is a peer for it.
        ///
        /// - Parameter isScripted: whether a script is the peer of each host.
        /// - Returns: the address that the host wants to connect to, and the peer that now has this address. Nil if
        ///   there is no such peer, or no free connection handle.
        mutating func endSearch(ofHost number: Int, _ isScripted: Bool) -> (PeerAddress, Party)? {
            guard let peer = ports[number].targetPeer, !isFull else { return nil }
            let party: Party
            if isScripted {
                party = .script
            } else if let other = ports.indices.first(where: { $0 != number && ports[$0].isAdvertising }) {
                party = .host(other)
                ports[other].isAdvertising = false
            } else {
                return nil
            }
            ports[number].targetPeer = nil
            return (peer, party)
        }

        /// Takes a packet from a host: queues it if the peer is a host. Returns the peer, or nil if there is no link.
        mutating func receive(_ packet: ACLPacket, fromHost number: Int) -> Party? {
            let handle = packet.header.connectionHandle
            guard let peer = self[handle]?.peer(of: .host(number)) else { return nil }
            if case .host(let other) = peer { ports[other].queueACL(packet.payload, of: packet.header) }
            ports[number].countTaken(on: handle)
            return peer
        }
    }

    /// A reference for the loop's closure.
    private struct Reference {
        unowned let air: NullAir
    }

    let dataLength: Int
    let packetCount: Int
    private let loop: SimulatedEventLoop
    // Release builds omit the check that accesses do not overlap, which would add to the cost of each packet.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var traffic = Traffic()
    /// The buffer for the answers of scripts.
    private var answer = PacketBuffer()
    /// The object itself while a delivery is scheduled, so that it lives until then. The loop's closure refers to it
    /// without keeping it: a weak reference would add a fortieth to the cost of a read.
    private var scheduled: NullAir?
    private var deliver: @Sendable () -> Void = {}
    private var script: NullRadio.ScriptedAnswer?

    init(dataLength: Int, packetCount: Int, loop: SimulatedEventLoop) {
        self.dataLength = dataLength
        self.packetCount = packetCount
        self.loop = loop
        let reference = LoopConfined(Reference(air: self), to: loop)
        deliver = { reference.value.air.deliverAll() }
    }

    var scriptedAnswer: NullRadio.ScriptedAnswer? {
        get { script }
        set {
            let previous = script
            script = newValue
            withExtendedLifetime(previous) {}
        }
    }

    // MARK: Hosts

    /// The number of hosts.
    private(set) var hostCount = 0

    /// Adds a host.
    func addHost() {
        traffic.ports.append(HostPort())
        hostCount += 1
    }

    /// Begins or ends the advertising of a host.
    func setAdvertising(_ isAdvertising: Bool, ofHost number: Int) {
        traffic.ports[number].isAdvertising = isAdvertising
        guard isAdvertising else { return }
        for number in 0..<hostCount { connect(from: number) }
    }

    /// Makes a host seek a peer.
    func seek(_ peer: PeerAddress?, fromHost number: Int) {
        traffic.ports[number].targetPeer = peer
        connect(from: number)
    }

    /// Ends a host's search, and returns its target.
    func endSearch(ofHost number: Int) -> PeerAddress? {
        traffic.ports[number].targetPeer.take()
    }

    // MARK: Links

    /// Whether no further link is possible.
    var isFull: Bool { traffic.isFull }

    /// Connects a scripted central to the first host.
    func connectScriptedCentral() -> ConnectionHandle {
        let handle = addLink(Link(central: .script, peripheral: .host(0)))
        tellOfConnection(handle, role: .peripheral, peer: address(ofCentral: handle), to: 0)
        return handle
    }

    /// Creates the link that a host requested, once there is a peer for it.
    private func connect(from number: Int) {
        let isScripted = script != nil
        let found: (peer: PeerAddress, party: Party)? = traffic.endSearch(ofHost: number, isScripted)
        guard let (peer, party) = found else { return }
        let handle = addLink(Link(central: .host(number), peripheral: party))
        tellOfConnection(handle, role: .central, peer: peer, to: number)
        if case .host(let other) = party {
            let isByOwnAddress = peer == PeerAddress(NullAir.address(ofHost: other))
            let central = isByOwnAddress ? PeerAddress(NullAir.address(ofHost: number)) : address(ofCentral: handle)
            tellOfConnection(handle, role: .peripheral, peer: central, to: other)
        }
    }

    func disconnect(_ handle: ConnectionHandle, by number: Int, reason: HCIErrorCode) {
        guard let link = traffic.removeLink(handle) else { return }
        queue(
            DisconnectionComplete(connectionHandle: handle, reason: .connectionTerminatedByLocalHost),
            toHost: number
        )
        if case .host(let other) = link.peer(of: .host(number)) {
            queue(DisconnectionComplete(connectionHandle: handle, reason: reason), toHost: other)
        }
    }

    // MARK: Encryption

    /// Asks the peripheral of a link for the key. Links with a script have no encryption. Packets are not changed by
    /// it.
    func requestKey(_ command: LEEnableEncryption, by number: Int) {
        let link = traffic[command.connectionHandle]
        guard case .host(let peripheral)? = link?.peer(of: .host(number)) else { return }
        queue(
            LELongTermKeyRequest(
                connectionHandle: command.connectionHandle,
                randomNumber: command.randomNumber,
                encryptedDiversifier: command.encryptedDiversifier
            ),
            toHost: peripheral
        )
    }

    /// Reports to both hosts of a link that it is encrypted.
    func encrypt(_ handle: ConnectionHandle) {
        guard let link = traffic[handle] else { return }
        for party in [link.central, link.peripheral] {
            guard case .host(let number) = party else { continue }
            queue(EncryptionChange(connectionHandle: handle, encryptionEnabled: .on), toHost: number)
        }
    }

    /// The address of a host's controller.
    static func address(ofHost number: Int) -> DeviceAddress {
        DeviceAddress(0x4E55_4C00_0001 + UInt64(number), isRandom: false)
    }

    private func address(ofCentral handle: ConnectionHandle) -> PeerAddress {
        PeerAddress(DeviceAddress(0x4345_0000_0000 + UInt64(handle.rawValue), isRandom: false))
    }

    private func addLink(_ link: Link) -> ConnectionHandle {
        traffic.add(link)
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
        guard let link = traffic[handle], case .host(let number) = link.peer(of: .script) else {
            return
        }
        queueAttributePDU(on: handle, toHost: number) { $0.append(pdu) }
        requestDelivery()
    }

    /// Delivers a packet to a host, with its H4 indicator, before the call returns.
    func inject(_ packet: RawSpan, toHost number: Int) {
        let receiver = traffic.ports[number].receiver
        receiver?.beginBatch()?.receive(packet)
    }

    func queue(_ event: some EventParameters, toHost number: Int) {
        queueEvent(toHost: number) { event.encodePacket(into: &$0) }
    }

    // MARK: Packets

    /// Sets or removes the receiver of a host that has opened or closed its controller.
    func attach(_ receiver: PacketReceiver?, toHost number: Int) {
        traffic.ports[number].receiver = receiver
    }

    /// Takes an ACL packet, without its H4 indicator, from a host.
    func receive(_ packet: RawSpan, fromHost number: Int) {
        guard let acl = try? ACLPacket(decoding: packet),
            let peer = traffic.receive(acl, fromHost: number)
        else { return }
        if peer == .script { receiveByScript(acl.payload, on: acl.header.connectionHandle, ofHost: number) }
        requestDelivery()
    }

    private func receiveByScript(_ frame: RawSpan, on handle: ConnectionHandle, ofHost number: Int) {
        // Scripts do not answer fragmented frames or frames of other channels.
        guard let script, frame.byteCount >= 4, frame[checked: 2] == 4, frame[checked: 3] == 0 else { return }
        let pdu = frame.extracting(droppingFirst: 4)
        queueAttributePDU(on: handle, toHost: number) { script(pdu, &$0) }
    }

    /// Queues the Attribute PDU that `encode` appends; nothing if it appends nothing.
    private func queueAttributePDU(
        on handle: ConnectionHandle,
        toHost number: Int,
        _ encode: (inout PacketBuffer) -> Void
    ) {
        // `encode` may cause other answers to be written while it runs.
        var pdu = answer
        answer = PacketBuffer(capacity: 0, headroom: 0)
        pdu.reset()
        encode(&pdu)
        if !pdu.isEmpty { traffic.ports[number].queueAttributePDU(&pdu, on: handle) }
        answer = pdu
    }

    /// Queues the event that `encode` appends for a host. `encode` must do nothing else, because the packets are being
    /// changed.
    func queueEvent(toHost number: Int, _ encode: (inout PacketBuffer) -> Void) {
        traffic.ports[number].queueEvent(encode)
        requestDelivery()
    }

    /// Schedules the delivery of the queued packets after the current work of the loop.
    private func requestDelivery() {
        guard scheduled == nil else { return }
        scheduled = self
        loop.execute(deliver)
    }

    private func deliverAll() {
        let air = scheduled
        scheduled = nil
        for number in 0..<hostCount {
            // The port is not accessed during the delivery, because the host sends packets from there.
            guard let delivery = traffic.ports[number].takeDelivery() else { continue }
            if let batch = delivery.receiver?.beginBatch() { delivery.packets.withEach { batch.receive($0) } }
            delivery.packets.removeAll()
        }
        withExtendedLifetime(air) {}
    }
}
