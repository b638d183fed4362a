import BLEByteCoding
import BLEHCI
import BluetoothTypes

extension BluetoothHost {
    /// Starts a scan, which continues after recoveries of the controller until it is stopped or the host is closed.
    ///
    /// - Parameter deliver: called on the loop with each event of the scan.
    package func startScan(
        _ options: ScanOptions,
        deliver: @escaping @Sendable (ScanEvent) -> Void
    ) -> ScanIdentifier {
        let identifier = ScanIdentifier(value: observers.makeIdentifier())
        guard power != .closed else {
            self.deliver(.scanEnd(deliver, .closed))
            endInput()
            return identifier
        }
        observers.scans[identifier] = deliver
        perform(gap.startScan(identifier, options, gapContext))
        return identifier
    }

    package func stopScan(_ identifier: ScanIdentifier) {
        // Code of the app that runs at the release may start or stop a scan.
        let removed = observers.scans.removeValue(forKey: identifier)
        perform(gap.stopScan(identifier, gapContext))
        withExtendedLifetime(removed) {}
    }

    func endScan(_ identifier: ScanIdentifier, _ error: HostError) {
        guard let observer = observers.scans.removeValue(forKey: identifier) else { return }
        deliver(.scanEnd(observer, error))
    }

    /// Makes one scan report peers again that are received from now on, because its app could not take the earlier
    /// reports.
    ///
    /// - Parameter addresses: the addresses of the peers; nil for all peers.
    package func reportAgain(_ addresses: Set<DeviceAddress>?, in scan: ScanIdentifier) {
        gap.reportAgain(addresses, in: scan)
    }

    // MARK: Reports

    func receive(_ event: borrowing LEAdvertisingReport) throws(PacketDecodingError) {
        var reports = event.reports
        while let report = try reports.next() {
            guard let received = report.address.deviceAddress, !isSilenced(received) else { continue }
            let address = identity(of: received)
            let type = report.eventType
            deliver(
                AdvertisingReceipt(
                    address: address,
                    privateAddress: address == received ? nil : received,
                    rssi: report.rssi,
                    isConnectable: type == .connectableScannableUndirected || type == .connectableDirected,
                    isScannable: type == .connectableScannableUndirected || type == .scannableUndirected,
                    isLegacy: true,
                    isScanResponse: type == .scanResponse,
                    data: report.data
                )
            )
        }
    }

    func receive(_ event: borrowing LEExtendedAdvertisingReport) throws(PacketDecodingError) {
        var reports = event.reports
        while let report = try reports.next() {
            guard let received = report.address.deviceAddress, !isSilenced(received) else { continue }
            let type = report.eventType
            let source = ExtendedReportAssembler.Source(
                address: received,
                advertisingSetIdentifier: report.advertisingSID,
                isScanResponse: type.contains(.scanResponse)
            )
            let status: ExtendedReportAssembler.Status =
                switch type.dataStatus {
                case .complete: .complete
                case .incompleteMoreToCome: .moreToCome
                default: .truncated
                }
            let fragment = gap.scanning.assembler.receive(report.data, from: source, status: status, at: loop.now)
            guard let assembled = fragment else { continue }
            let data = assembled.data ?? []
            let address = identity(of: received)
            let receipt = AdvertisingReceipt(
                address: address,
                privateAddress: address == received ? nil : received,
                rssi: report.rssi,
                isConnectable: type.contains(.connectable),
                isScannable: type.contains(.scannable),
                isLegacy: type.contains(.legacyPDU),
                primaryPHY: report.primaryPHY,
                secondaryPHY: report.secondaryPHY,
                isScanResponse: type.contains(.scanResponse),
                isTruncated: assembled.isTruncated,
                advertisingSetIdentifier: report.advertisingSID == 0xFF ? nil : report.advertisingSID,
                data: assembled.data == nil ? report.data : data.rawSpan
            )
            deliver(receipt)
        }
    }

    /// The identity address of the device that uses an address, if a bond has its key; otherwise the address itself.
    /// Only private addresses need access to the engine.
    private func identity(of received: DeviceAddress) -> DeviceAddress {
        received.kind == .resolvablePrivate ? gap.identity(of: received) : received
    }

    /// Whether packets of a peer are ignored in network privacy mode: see ``AddressPlan/isSilenced(_:)``. Only this
    /// mode needs access to the engine.
    private func isSilenced(_ received: DeviceAddress) -> Bool { usesNetworkPrivacy && gap.isSilenced(received) }

    private func deliver(_ receipt: borrowing AdvertisingReceipt) {
        if receipt.isConnectable, gap.scanning.isResolvingPeers, gap.awaitsResolution(of: receipt.address) {
            perform(gap.resolved(receipt.address, at: receipt.privateAddress ?? receipt.address, gapContext))
        }
        guard let matches = gap.scanning.receive(receipt, at: loop.now) else { return }
        let event = gap.scanning.scans.event(of: matches)
        if turn.isIdle, matches.isSingle {
            // Observers have the order of their scans, so no lookup is needed.
            let deliver = observers.scans.values[matches.first]
            let phase = beginDelivery()
            deliver(event)
            turn.phase = phase
        } else {
            for scan in gap.scanning.scans.scans(of: matches) { deliver(.scanEvent(scan, event)) }
        }
    }
}
