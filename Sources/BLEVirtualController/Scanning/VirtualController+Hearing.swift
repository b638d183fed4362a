import BLEHCI
import BluetoothTypes

extension VirtualController {
    // MARK: Radio

    /// Whether the controller supports a PHY.
    func understands(_ phy: PHY) -> Bool {
        switch phy {
        case .le1M: true
        case .le2M: configuration.features.contains(.le2MPHY)
        case .leCoded, .leCodedS2: configuration.features.contains(.leCodedPHY)
        default: false
        }
    }

    /// Returns the signal strength of a set in dBm. It is reduced if the set is sent with less than the sender's full
    /// power.
    func rssi(from sender: VirtualController, _ parameters: AdvertisingSet.Parameters) -> Int8 {
        let attenuation = Int(sender.configuration.transmitPower) - Int(parameters.transmitPower)
        return Int8(clamping: max(-127, Int(air.rssi(at: self, from: sender)) - attenuation))
    }

    /// Whether a packet of a set is received now.
    func receives(
        from sender: VirtualController,
        _ parameters: AdvertisingSet.Parameters,
        phy: PHY
    ) -> Bool {
        rssi(from: sender, parameters) >= AirTime.sensitivity(phy) && air.getsThrough(from: sender, to: self, phy: phy)
    }

    /// Returns the number of data bytes received of a chain of PDUs, or nil if its first PDU is lost.
    func receive(
        _ payload: AdvertisingPayload,
        from sender: VirtualController,
        _ parameters: AdvertisingSet.Parameters,
        phy: PHY
    ) -> Int? {
        guard understands(phy) else { return nil }
        for index in 0..<payload.chainLength {
            guard receives(from: sender, parameters, phy: phy) else {
                return index == 0 ? nil : index * AdvertisingPayload.bytesPerPDU
            }
        }
        return payload.bytes.count
    }

    /// Runs an action after a delay, or at once if there is none.
    func perform(after delay: Duration, _ action: @escaping (VirtualController) -> Void) {
        if delay <= .zero { action(self) } else { schedule(after: delay, action) }
    }

    /// Whether reports name the coding of the LE Coded PHY (Vol 4, Part E, 7.7.65.13).
    private var distinguishesCoding: Bool { linkFeatures.contains(.advertisingCodingSelectionHostSupport) }

    // MARK: Advertisements

    /// Receives an advertising event, if the controller listens and the event gets through.
    func hear(_ advertisement: Advertisement) {
        let phy = advertisement.primaryPHY
        let airPHYs = advertisement.advertisingSet.parameters.airPHYs
        let scan = scanner.isExtended || advertisement.isLegacy ? scanner.listens(to: phy, at: air.now) : nil
        let isInitiating =
            advertisement.isConnectable
            && initiator?.listens(to: phy, at: air.now, legacy: advertisement.isLegacy) == true
        guard scan != nil || isInitiating else { return }
        let (sender, parameters) = (advertisement.sender, advertisement.advertisingSet.parameters)
        guard receives(from: sender, parameters, phy: airPHYs.primary) else { return }
        let payload = advertisement.data
        var octets = payload.bytes.count
        if !advertisement.isLegacy {
            guard let received = receive(payload, from: sender, parameters, phy: airPHYs.secondary) else { return }
            octets = received
        }
        guard let identity = advertisement.isAnonymous ? .anonymous : identify(advertisement.address.address) else {
            return
        }
        if let scan { self.scan(advertisement, of: identity, received: octets, isActive: scan.scanType == .active) }
        if isInitiating { connect(to: advertisement, of: identity) }
    }

    /// Reports an advertisement, and requests a scan response if it is scannable.
    private func scan(_ advertisement: Advertisement, of identity: Identity, received: Int, isActive: Bool) {
        synchronize(with: advertisement, of: identity)
        let direction = direction(of: advertisement.target, from: identity, own: scanner.ownAddressType)
        switch direction {
        case .everyone, .thisDevice: break
        case .unresolved: guard scanner.filterPolicy.isExtended else { return }
        case .another: return
        }
        if scanner.filterPolicy.isFiltered {
            guard isAccepted(identity.address) else { return }
        }
        let sender = advertisement.sender
        let delay = scanner.delayInOrder(air.delay(from: sender, to: self), from: sender, at: air.now)
        let type = LEExtendedAdvertisingReport.EventType(advertisement)
        report(
            AdvertisingReport(
                advertisement,
                eventType: type,
                identity: identity,
                direction: direction,
                data: advertisement.data.bytes,
                received: received,
                rssi: rssi(from: sender, advertisement.advertisingSet.parameters),
                distinguishesCoding: distinguishesCoding
            ),
            after: delay
        )
        guard isActive, advertisement.isScannable else { return }
        let response = AdvertisingReport(
            advertisement,
            eventType: type.union(.scanResponse),
            identity: identity,
            direction: direction,
            data: advertisement.advertisingSet.scanResponse.bytes,
            received: 0,
            rssi: rssi(from: sender, advertisement.advertisingSet.parameters),
            distinguishesCoding: distinguishesCoding
        )
        // No scan response is requested if its report would be filtered.
        guard !scanner.hasReported(response.reported),
            let received = scanResponse(to: advertisement, of: identity)
        else { return }
        report(response.with(received: received), after: delay)
    }

    /// Requests a scan response. Returns the number of bytes received, or nil if there was no response.
    private func scanResponse(to advertisement: Advertisement, of identity: Identity) -> Int? {
        let (sender, parameters) = (advertisement.sender, advertisement.advertisingSet.parameters)
        guard let own = ownAddress(scanner.ownAddressType, random: randomAddress, towards: identity.entry),
            air.getsThrough(from: self, to: sender, phy: advertisement.dataPHY),
            sender.answersScan(of: advertisement, from: own.address)
        else { return nil }
        return receive(advertisement.advertisingSet.scanResponse, from: sender, parameters, phy: advertisement.dataPHY)
    }

    /// Reports an advertisement to the host, unless it is a duplicate that the host filters.
    private func report(_ report: AdvertisingReport, after delay: Duration) {
        guard !scanner.hasReported(report.reported) else { return }
        // An incomplete report may be repeated.
        if report.isWhole { scanner.remember(report.reported) }
        perform(after: delay) { controller in
            guard controller.scanner.isEnabled else { return }
            controller.tell(report, isExtended: controller.scanner.isExtended)
        }
    }

    private func tell(_ advertising: AdvertisingReport, isExtended: Bool) {
        if isExtended {
            guard host.wants(subevent: LEExtendedAdvertisingReport.subeventCode) else { return }
            for fragment in advertising.fragments {
                report { advertising.encodeExtended(fragment, into: &$0) }
            }
        } else if case .unresolved(let target) = advertising.direction {
            guard host.wants(subevent: LEDirectedAdvertisingReport.subeventCode) else { return }
            report { advertising.encodeDirected(to: target, into: &$0) }
        } else {
            guard host.wants(subevent: LEAdvertisingReport.subeventCode) else { return }
            report { advertising.encodeLegacy(into: &$0) }
        }
    }
}
