import BLEByteCoding
import BLEHCI
import BluetoothTypes
import DequeModule

/// One controller's side of a link: its send queues, the packet in flight, and its control procedures.
final class LinkEnd {
    let controller: VirtualController
    let role: Role
    let party: LinkParty
    let place: Int
    /// The link, which owns its ends. The controllers keep it alive.
    unowned let link: Link
    /// Whether the link has ended at this end, or the controller was reset.
    private(set) var isGone = false

    // The state of reception.
    var hasHeard = false
    var lastHeard: Instant
    /// The time at which the last packet from the peer reaches the host. No later packet may overtake it.
    private var lastDelivery: Instant

    // The state of transmission.
    /// It stays short: each side runs one procedure at a time.
    private var control: Deque<ControlPDU> = []
    private var data: Deque<OutgoingPacket> = []
    private var inFlight: DataPhysicalChannelPDU?
    private var isDelivered = false
    /// The number of buffers held by ACL packets of the host: queued, in flight, or lost by a fault.
    private var packetsHeld = 0
    private(set) var terminationReason: HCIErrorCode?

    // The negotiated state.
    /// The parameters that the host was last informed of.
    var toldParameters: LinkParameters
    var transmitLength: DataLength
    var effectiveLength: DataLength
    var peerFeatures: LEFeatures?
    var peerVersion: (version: CoreVersion, company: UInt16, subversion: UInt16)?
    var procedure: Procedure?
    var waiting: Deque<Procedure> = []
    var procedures: UInt64 = 0
    /// Whether ``beginNext()`` starts procedures now.
    var isBeginning = false
    /// The peer's connection parameter request that the host has not answered.
    var askedParameters: ConnectionParameters?
    var encryption = Encryption()
    var authenticatedPayload = AuthenticatedPayloadTimer()
    var syncTransfer: SyncTransferSettings
    var sounding = SoundingState()
    var power: PowerControl
    /// As the central: the subrate parameters that it accepts from its peer.
    var acceptedSubrate: SubrateRange
    /// As the central: the subrate that it has indicated, until the peripheral acknowledges it.
    var indicatedSubrate: SubrateIndication?
    /// Whether the host prefers S=2 coding when this end sends on the LE Coded PHY.
    var prefersS2Coding = false
    /// The PHYs that the host prefers for this link (Vol 4, Part E, 7.8.49).
    var preferredPHYs: PHYChoice

    /// An ACL packet of the host, and the number of bytes already sent.
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
        syncTransfer = controller.linkDefaults.syncTransfer
        power = PowerControl(power: controller.configuration.transmitPower)
        acceptedSubrate = controller.linkDefaults.subrate
        preferredPHYs = controller.linkDefaults.phys(of: controller.configuration)
        effectiveLength = DataLength(maxRXOctets: 27, maxRXTime: 328, maxTXOctets: 27, maxTXTime: 328)
    }

    var handle: ConnectionHandle { ConnectionHandle(VirtualController.firstHandle + UInt16(place)) }
    var other: LinkEnd { link.other(self) }
    var air: Air { controller.air }

    /// Maximum number of data bytes in one packet.
    var transmitOctets: Int {
        min(
            Int(effectiveLength.maxTXOctets),
            AirTime.byteCount(fitting: Int(effectiveLength.maxTXTime), phy: link.phy(from: self))
        )
    }

    func tellConnected() {
        let peer = party.peer
        let parameters = link.parameters
        let none = DeviceAddress(0, isRandom: true)
        controller.tell(
            LEEnhancedConnectionCompleteV2(
                connectionHandle: handle,
                role: role,
                peerAddress: peer,
                localResolvablePrivateAddress: party.localResolvablePrivateAddress ?? none,
                peerResolvablePrivateAddress: party.peerResolvablePrivateAddress ?? none,
                connectionInterval: parameters.interval,
                peripheralLatency: parameters.latency,
                supervisionTimeout: parameters.supervisionTimeout,
                advertisingHandle: party.advertisingHandle,
                syncHandle: party.syncHandle
            )
        )
        if controller.configuration.features.contains(.channelSelectionAlgorithm2),
            other.controller.configuration.features.contains(.channelSelectionAlgorithm2)
        {
            controller.tellLE(LEChannelSelectionAlgorithm(connectionHandle: handle, channelSelectionAlgorithm: 1))
        }
    }

    // MARK: Sending

    /// Whether this end needs an event: to send a queued packet, or to complete the packet in flight.
    var hasWork: Bool { inFlight != nil || hasQueued }

    /// Whether there is data that the peer has not received.
    var hasMoreToSend: Bool { inFlight != nil && !isDelivered || hasQueued }

    private var hasQueued: Bool {
        !control.isEmpty || !encryption.pausesData && (!data.isEmpty || terminationReason != nil)
    }

    func send(_ pdu: ControlPDU) {
        control.append(pdu)
        link.wake()
    }

    /// Takes a packet of the host. The controller has reserved a buffer for it.
    func send(_ bytes: [UInt8], isStart: Bool) {
        guard terminationReason == nil else {
            // The link is being terminated, so the packet is dropped.
            controller.packetsHeld -= 1
            controller.tellCompleted(1, on: handle)
            return
        }
        packetsHeld += 1
        data.append(OutgoingPacket(bytes: bytes, isStart: isStart))
        link.wake()
    }

    /// Terminates the link after the data that the host has sent so far.
    func terminate(_ reason: HCIErrorCode) {
        terminationReason = reason
        if encryption.pausesData { control.append(.terminate(reason)) }
        link.wake()
    }

    /// Pauses data and procedures until encryption has started. A termination does not wait (Vol 6, Part B, 5.1.3).
    func pauseData() {
        guard !encryption.pausesData else { return }
        encryption.pausesData = true
        if let terminationReason { send(.terminate(terminationReason)) }
    }

    /// Returns the content of this end's next packet: the unacknowledged PDU, or else the next queued PDU. Returns nil
    /// for an empty packet.
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

    /// Completes this end's packet, which the peer has received.
    private func acknowledge() {
        guard isDelivered, let pdu = inFlight else { return }
        inFlight = nil
        isDelivered = false
        switch pdu.body {
        case .data(_, _, endsPacket: true):
            recycleBuffer()
        case .control(.terminate): end(.connectionTerminatedByLocalHost)
        case .control(.subrateIndication): subrateWasAcknowledged()
        case .control(let pdu): wasAcknowledged(pdu)
        case .data: break
        }
    }

    /// Returns the buffer of an ACL packet to the host, unless a fault holds it until the link ends.
    private func recycleBuffer() {
        if controller.faults.bufferLoss > 0, air.random.happens(controller.faults.bufferLoss) { return }
        packetsHeld -= 1
        controller.packetsHeld -= 1
        controller.tellCompleted(1, on: handle)
    }

    // MARK: Hearing

    /// Handles a packet of the peer. It acknowledges this end's last packet, and may contain a new PDU.
    ///
    /// - Parameter time: the air time of the packet, in microseconds.
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

    /// Marks the PDU in flight as received. Returns nil if it was received before, and was repeated for lack of an
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

    /// Ends the link at this end, and reports it to the host.
    func end(_ reason: HCIErrorCode) {
        guard !isGone else { return }
        // If the host requested the end, the reason is always Connection Terminated By Local Host.
        let reason = terminationReason == nil ? reason : .connectionTerminatedByLocalHost
        abandon()
        controller.links[place] = nil
        controller.packetsHeld -= packetsHeld
        failProcedures(reason)
        controller.endStreams(of: self, reason)
        controller.tell(DisconnectionComplete(connectionHandle: handle, reason: reason))
    }

    /// Ends the link at this end without a report to the host.
    func abandon() {
        guard !isGone else { return }
        isGone = true
        air.cancel(authenticatedPayload.timer)
        air.cancel(power.pathLoss.timer)
        link.conditionsHaveChanged()
    }
}
