import BluetoothTypes
import ByteCoding
import HCI

extension VirtualController {
    // MARK: Advertising

    func setAdvertising(_ isEnabled: Bool) -> ErrorCode {
        guard isEnabled else {
            advertiser.isEnabled = false
            advertisingGeneration += 1
            return .success
        }
        guard let address = ownAddress(advertiser.parameters.ownAddressType) else {
            return .invalidHCICommandParameters
        }
        guard !advertiser.isEnabled else { return .success }
        advertiser.isEnabled = true
        advertisingGeneration += 1
        let generation = advertisingGeneration
        air.schedule(after: .milliseconds(1)) { [weak self] in self?.advertise(from: address, generation) }
        return .success
    }

    /// One advertising event, and the next after the interval.
    private func advertise(from address: DeviceAddress, _ generation: UInt64) {
        guard advertiser.isEnabled, generation == advertisingGeneration else { return }
        air.forEachController(but: self) { other in
            guard advertiser.isEnabled else { return }
            other.hear(self, address)
            if advertiser.isConnectable, let initiation = other.initiator, other.isWanted(address, by: initiation) {
                connect(other, initiation, at: address)
            }
        }
        // The interval is followed by a random delay of up to 10 ms (Vol 6, Part B, 4.4.2.2.1).
        let interval = Duration.microseconds(625 * Int(advertiser.parameters.advertisingIntervalMin))
        air.schedule(after: interval + .milliseconds(Int(nextRandom() % 10))) { [weak self] in
            self?.advertise(from: address, generation)
        }
    }

    private func isWanted(_ address: DeviceAddress, by initiation: InitiatingState) -> Bool {
        initiation.command.initiatorFilterPolicy == .filterAcceptList
            ? acceptList.contains(PeerAddress(address)) : initiation.command.peerAddress == PeerAddress(address)
    }

    // MARK: Scanning

    /// Hears an advertisement, and asks for the scan response where it scans actively.
    private func hear(_ other: VirtualController, _ address: DeviceAddress) {
        guard scanner.isEnabled else { return }
        let advertiser = other.advertiser
        let type: LEAdvertisingReport.EventType =
            switch advertiser.parameters.advertisingType {
            case .connectableScannableUndirected: .connectableScannableUndirected
            case .scannableUndirected: .scannableUndirected
            case .connectableHighDutyCycleDirected, .connectableLowDutyCycleDirected: .connectableDirected
            case .nonConnectableUndirected: .nonConnectableUndirected
            }
        report(type, advertiser.data, from: address)
        if advertiser.isScannable, scanner.parameters.leScanType == .active {
            report(.scanResponse, advertiser.scanResponse, from: address)
        }
    }

    private func report(_ type: LEAdvertisingReport.EventType, _ data: [UInt8], from address: DeviceAddress) {
        let key = ScanningState.Reported(address: address, isScanResponse: type == .scanResponse)
        if scanner.filtersDuplicates, !scanner.reported.insert(key).inserted { return }
        guard leEventMask.contains(.advertisingReport) else { return }
        sendEvent {
            LEAdvertisingReport.Report(
                eventType: type,
                address: PeerAddress(address),
                data: data.rawSpan,
                rssi: configuration.rssi
            ).encodePacket(into: &$0)
        }
    }

    // MARK: Connecting

    private func connect(_ central: VirtualController, _ initiation: InitiatingState, at address: DeviceAddress) {
        guard let handle = freeHandle, let centralHandle = central.freeHandle,
            let centralAddress = central.ownAddress(initiation.command.ownAddressType)
        else { return }
        advertiser.isEnabled = false
        advertisingGeneration += 1
        central.initiator = nil
        let link = VirtualLink(
            central: .init(controller: central, handle: centralHandle, address: centralAddress),
            peripheral: .init(controller: self, handle: handle, address: address),
            interval: initiation.command.connectionIntervalMin,
            latency: initiation.command.maxLatency,
            supervisionTimeout: initiation.command.supervisionTimeout
        )
        links[handle] = link
        central.links[centralHandle] = link
        central.sendConnectionComplete(link: link, handle: centralHandle, role: .central, peer: address)
        sendConnectionComplete(link: link, handle: handle, role: .peripheral, peer: centralAddress)
    }

    private var freeHandle: ConnectionHandle? {
        (0x0040...0x00FF).lazy.map { ConnectionHandle($0) }.first { self.links[$0] == nil }
    }

    private func sendConnectionComplete(
        link: VirtualLink,
        handle: ConnectionHandle,
        role: Role,
        peer: DeviceAddress
    ) {
        sendEvent {
            LEConnectionComplete(
                connectionHandle: handle,
                role: role,
                peerAddress: PeerAddress(peer),
                connectionInterval: link.interval,
                peripheralLatency: link.latency,
                supervisionTimeout: link.supervisionTimeout
            ).encodePacket(into: &$0)
        }
    }

    /// Tells the host that a connection could not be made.
    func sendConnectionComplete(status: ErrorCode) {
        sendEvent {
            LEConnectionComplete(
                status: status,
                connectionHandle: 0,
                role: .central,
                peerAddress: PeerAddress(type: .public, value: 0),
                connectionInterval: 0,
                peripheralLatency: 0,
                supervisionTimeout: 0
            ).encodePacket(into: &$0)
        }
    }

    // MARK: Data

    /// Takes an ACL packet from the host and brings it to the peer.
    func receiveData(_ packet: RawSpan) {
        guard let packet = try? ACLPacket(decoding: packet), let link = links[packet.header.connectionHandle] else {
            return
        }
        guard packet.payload.byteCount <= Int(configuration.aclDataLength),
            link.takeBuffer(of: self, limit: Int(configuration.aclPacketCount))
        else {
            return sendEvent { DataBufferOverflow(linkType: .acl).encodePacket(into: &$0) }
        }
        link.carry(
            [UInt8](copying: packet.payload),
            isContinuing: packet.header.packetBoundaryFlag == .continuing,
            from: self
        )
    }
}
