import BluetoothTypes
import ByteCoding
import DequeModule
import HCI

/// One controller's side of a link: what waits to be sent, what is in flight, and the procedures that are going on.
final class LinkEnd {
    let controller: VirtualController
    let role: Role
    let party: LinkParty
    let place: Int
    /// The link, which owns its ends; the controllers that have it keep it alive.
    unowned let link: Link
    /// The host was told that the link has ended, or has been reset.
    private(set) var isGone = false

    // What is heard of the peer.
    var hasHeard = false
    var lastHeard: Instant
    /// When what the peer sent last reaches the host, so that nothing overtakes it.
    private var lastDelivery: Instant

    // What is sent.
    private var control: Deque<ControlPDU> = []
    private var data: Deque<OutgoingPacket> = []
    private var inFlight: DataPhysicalChannelPDU?
    private var isDelivered = false
    /// How many buffers the host's ACL packets take: those that wait, are in flight, or were lost by a fault.
    private var packetsHeld = 0
    private(set) var terminationReason: ErrorCode?

    // What has been agreed on.
    /// The parameters that the host knows of.
    var toldParameters: LinkParameters
    var transmitLength: DataLength
    var effectiveLength: DataLength
    var peerFeatures: LEFeatures?
    var peerVersion: (version: CoreVersion, company: UInt16, subversion: UInt16)?
    var procedure: Procedure?
    var waiting: Deque<Procedure> = []
    var procedures: UInt64 = 0
    /// The connection parameters that the peer asks for and the host has not answered.
    var askedParameters: ConnectionParameters?
    var encryption = Encryption()
    var authenticatedPayload = AuthenticatedPayloadTimer()

    /// An ACL packet of the host, and how much of it has been sent.
    private struct OutgoingPacket {
        let bytes: [UInt8]
        let isStart: Bool
        var sent = 0
    }

    init(_ party: LinkParty, role: Role, place: Int, link: Link) {
        self.link = link
        self.party = party
        self.role = role
        self.place = place
        controller = party.controller
        toldParameters = link.parameters
        lastHeard = controller.air.now
        lastDelivery = controller.air.now
        transmitLength = controller.linkDefaults.dataLength(of: controller.configuration)
        effectiveLength = DataLength(maxRXOctets: 27, maxRXTime: 328, maxTXOctets: 27, maxTXTime: 328)
    }

    var handle: ConnectionHandle { ConnectionHandle(VirtualController.firstHandle + UInt16(place)) }
    var other: LinkEnd { link.other(self) }
    var air: Air { controller.air }

    /// How many octets of data one packet carries.
    var transmitOctets: Int {
        min(
            Int(effectiveLength.maxTXOctets),
            AirTime.octets(fitting: Int(effectiveLength.maxTXTime), phy: link.phy(from: self))
        )
    }

    func tellConnected() {
        let peer = party.peer
        let parameters = link.parameters
        if controller.host.wants(subevent: LEEnhancedConnectionComplete.subeventCode) {
            controller.tellLE(
                LEEnhancedConnectionComplete(
                    connectionHandle: handle,
                    role: role,
                    peerAddress: peer,
                    localResolvablePrivateAddress: party.localResolvablePrivateAddress
                        ?? DeviceAddress(0, isRandom: true),
                    peerResolvablePrivateAddress: party.peerResolvablePrivateAddress
                        ?? DeviceAddress(0, isRandom: true),
                    connectionInterval: parameters.interval,
                    peripheralLatency: parameters.latency,
                    supervisionTimeout: parameters.supervisionTimeout
                )
            )
        } else {
            controller.tellLE(
                LEConnectionComplete(
                    connectionHandle: handle,
                    role: role,
                    peerAddress: peer,
                    connectionInterval: parameters.interval,
                    peripheralLatency: parameters.latency,
                    supervisionTimeout: parameters.supervisionTimeout
                )
            )
        }
        if controller.configuration.features.contains(.channelSelectionAlgorithm2),
            other.controller.configuration.features.contains(.channelSelectionAlgorithm2)
        {
            controller.tellLE(LEChannelSelectionAlgorithm(connectionHandle: handle, channelSelectionAlgorithm: 1))
        }
    }

    // MARK: Sending

    /// Whether an event is needed for this end: something waits, is in flight or has to be acknowledged.
    var hasWork: Bool { inFlight != nil || hasQueued }

    /// Whether there is something that the peer does not have yet.
    var hasMoreToSend: Bool { inFlight != nil && !isDelivered || hasQueued }

    private var hasQueued: Bool {
        !control.isEmpty || !encryption.pausesData && (!data.isEmpty || terminationReason != nil)
    }

    func send(_ pdu: ControlPDU) {
        control.append(pdu)
        link.wake()
    }

    /// Takes a packet of the host; the controller has found a buffer for it.
    func send(_ bytes: [UInt8], isStart: Bool) {
        guard terminationReason == nil else {
            // The link is on its way out; what comes now goes with it.
            controller.packetsHeld -= 1
            controller.tellCompleted(1, on: handle)
            return
        }
        packetsHeld += 1
        data.append(OutgoingPacket(bytes: bytes, isStart: isStart))
        link.wake()
    }

    /// Ends the link once what the host has sent so far has arrived.
    func terminate(_ reason: ErrorCode) {
        terminationReason = reason
        if encryption.pausesData { control.append(.terminate(reason)) }
        link.wake()
    }

    /// What this end's next packet carries: what the peer has not acknowledged yet, else what comes first; nil for an empty
    /// packet.
    func nextPDU() -> DataPhysicalChannelPDU? {
        if inFlight == nil { inFlight = takeNext() }
        return inFlight
    }

    private func takeNext() -> DataPhysicalChannelPDU? {
        isDelivered = false
        if let pdu = control.popFirst() { return seal(.control(pdu)) }
        if encryption.pausesData { return nil }
        guard var packet = data.popFirst() else {
            return terminationReason.map { seal(.control(.terminate($0))) }
        }
        let end = min(packet.sent + transmitOctets, packet.bytes.count)
        let part = Array(packet.bytes[packet.sent..<end])
        let isStart = packet.isStart && packet.sent == 0
        packet.sent = end
        let endsPacket = end == packet.bytes.count
        if !endsPacket { data.prepend(packet) }
        return seal(.data(part, isStart: isStart, endsPacket: endsPacket))
    }

    private func seal(_ body: DataPhysicalChannelPDU.Body) -> DataPhysicalChannelPDU {
        DataPhysicalChannelPDU(body: body, seal: encryption.transmitKey)
    }

    /// The peer has this end's packet.
    private func acknowledge() {
        guard isDelivered, let pdu = inFlight else { return }
        inFlight = nil
        isDelivered = false
        switch pdu.body {
        case .data(_, _, endsPacket: true):
            giveBackBuffer()
        case .control(.terminate): end(.connectionTerminatedByLocalHost)
        case .data, .control: break
        }
    }

    /// A packet of the host has arrived: its buffer is free, unless a fault keeps it until the link ends.
    private func giveBackBuffer() {
        if controller.faults.bufferLoss > 0, air.random.happens(controller.faults.bufferLoss) { return }
        packetsHeld -= 1
        controller.packetsHeld -= 1
        controller.tellCompleted(1, on: handle)
    }

    // MARK: Hearing

    /// A packet of the peer has come: it acknowledges this end's last one, and brings what is new.
    ///
    /// - Parameter time: what it takes on the air, in microseconds.
    func hear(_ pdu: DataPhysicalChannelPDU?, after time: Int) {
        hasHeard = true
        lastHeard = air.now
        acknowledge()
        guard let pdu, let sender = other.deliverOnce() else { return }
        let delay = air.delay(from: sender, to: controller)
        lastDelivery = max(lastDelivery, air.now + .microseconds(time) + delay)
        air.schedule(at: lastDelivery) { [self] in
            if !isGone { receive(pdu) }
        }
    }

    /// Marks what is in flight as arrived; nil where it had arrived before and was sent again for want of an
    /// acknowledgement.
    private func deliverOnce() -> VirtualController? {
        if isDelivered { return nil }
        isDelivered = true
        return controller
    }

    private func receive(_ pdu: DataPhysicalChannelPDU) {
        guard pdu.seal == encryption.receiveKey else {
            return end(.connectionTerminatedDueToMICFailure)
        }
        if pdu.seal != nil { authenticatedPayload.lastProof = air.now }
        switch pdu.body {
        case .control(let pdu): receive(pdu)
        case .data(let bytes, let isStart, _): controller.deliver(bytes, isStart: isStart, on: handle)
        }
    }

    // MARK: The end

    /// The link is over for this end, and its host is told.
    func end(_ reason: ErrorCode) {
        guard !isGone else { return }
        // A host that has asked for the end is told that it came, however it did.
        let reason = terminationReason == nil ? reason : .connectionTerminatedByLocalHost
        abandon()
        controller.links[place] = nil
        controller.packetsHeld -= packetsHeld
        failProcedures(reason)
        controller.tell(DisconnectionComplete(connectionHandle: handle, reason: reason))
    }

    /// The link is over for this end, and nobody is told.
    func abandon() {
        guard !isGone else { return }
        isGone = true
        link.conditionsHaveChanged()
    }
}
