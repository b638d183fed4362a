import BluetoothTypes
import ByteCoding
import HCI

extension BluetoothHost {
    /// Starts a scan, which continues after recoveries of the controller until it is stopped or the host is closed.
    ///
    /// - Parameter deliver: called on the loop with each event of the scan.
    package func startScan(
        _ options: ScanOptions,
        deliver: @escaping @Sendable (ScanEvent) -> Void
    ) -> ScanIdentifier {
        let identifier = ScanIdentifier(value: makeIdentifier())
        guard power != .closed else {
            self.deliver(.scanEnd(deliver, .closed))
            endInput()
            return identifier
        }
        scan.scans.insert(identifier, options)
        scanObservers[identifier] = deliver
        reconcileScan()
        return identifier
    }

    package func stopScan(_ identifier: ScanIdentifier) {
        guard scan.scans.remove(identifier) else { return }
        // Code of the app that runs at the release may start or stop a scan.
        let removed = scanObservers.removeValue(forKey: identifier)
        reconcileScan()
        withExtendedLifetime(removed) {}
    }

    /// Has the plan bring the controller's scanning to what the scans need.
    func reconcileScan() {
        guard power == .on else { return }
        guard scan.mayScan || connector.mayInitiate else {
            scan.forgetSilenceUnlessWanted()
            return resumeRestWaiters()
        }
        if scan.requestRun() { spawn { $0.runScanPlan() } }
    }

    /// Sends the plan's next command. If there is none, other activities may begin that wait for scanning.
    private func runScanPlan() {
        if power == .on, let information, let next = scan.nextCommand(scanContext(information)) {
            send(next.command, as: next.step)
        } else {
            scan.endRun()
            resumeRestWaiters()
            scanPassEnded()
        }
        armScanTimer()
        endInput()
    }

    private func scanContext(_ information: ControllerInformation) -> ScanPlan.Context {
        let connecting = connectionContext(information)
        if connector.updateTurns(connecting, at: loop.now) { reconcileConnections() }
        armConnectionTimer()
        return ScanPlan.Context(
            usesExtendedCommands: information.usesExtendedCommands,
            ownAddressType: ownAddressType,
            isSeeking: isSeekingPeers,
            isHeld: privacy.hold != .nothing,
            isInitiating: connector.controller != .idle || connector.wantedInitiation(connecting) != nil,
            canScanPassivelyWhileInitiating: information.canScanWhileInitiating(actively: false),
            canScanActivelyWhileInitiating: information.canScanWhileInitiating(actively: true)
        )
    }

    /// Gives the plan the reply to its command, and has it decide the next one.
    func scanCommandEnded(_ step: GAPStep, _ failure: CommandFailure?) {
        spawn { $0.runScanPlan() }
        if let failure {
            perform(scan.failed(step, failure, at: loop.now))
        } else {
            scan.finished(step, at: loop.now)
        }
        armScanTimer()
    }

    private func perform(_ effects: [ScanEffect]) {
        for effect in effects {
            switch effect {
            case .end(let identifier, let failure): endScan(identifier, .command(failure))
            case .restart(let silence):
                emit(HostEvent.scanRestarted(afterSilence: silence))
                reconcileScan()
            case .reset(let silence):
                controllerFailed("its scan has been silent for \(silence)")
            }
        }
    }

    private func endScan(_ identifier: ScanIdentifier, _ error: HostError) {
        guard let observer = scanObservers.removeValue(forKey: identifier) else { return }
        deliver(.scanEnd(observer, error))
    }

    /// Ends all scans.
    func endScans(_ error: HostError) {
        for identifier in scan.endScans() { endScan(identifier, error) }
    }

    /// Makes all scans report peers again that are received from now on, because their link or an attempt to connect to
    /// them has ended.
    ///
    /// Otherwise an app that connects to the peers that its scan reports could connect to each of them only once.
    func reportAgain(_ addresses: Set<DeviceAddress>) {
        if scan.scans.forget(addresses) { reconcileScan() }
    }

    /// Makes one scan report peers again that are received from now on, because its app could not take the earlier
    /// reports.
    ///
    /// - Parameter addresses: the addresses of the peers; nil for all peers.
    package func reportAgain(_ addresses: Set<DeviceAddress>?, in scan: ScanIdentifier) {
        if self.scan.scans.forget(addresses, in: scan) { reconcileScan() }
    }

    func scanEndedByController() {
        scan.endedByController(at: loop.now)
        armScanTimer()
        reconcileScan()
    }

    /// Records that the controller was reset and no longer scans.
    func forgetScan() {
        scan.controllerLost()
        armScanTimer()
    }

    // MARK: Time

    /// Sets the timer to the plan's deadline.
    private func armScanTimer() {
        setTimer(of: .scanning, to: scan.deadline)
    }

    func scanDeadlineReached() {
        guard power == .on else { return }
        perform(scan.advance(to: loop.now, hasLink: !links.isEmpty))
        armScanTimer()
    }

    // MARK: Reports

    func receive(_ event: borrowing LEAdvertisingReport) throws(PacketDecodingError) {
        var reports = event.reports
        while let report = try reports.next() {
            guard let received = report.address.deviceAddress, !isSilencedByPrivacy(received) else { continue }
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
            guard let received = report.address.deviceAddress, !isSilencedByPrivacy(received) else { continue }
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
            guard let assembled = scan.assembler.receive(report.data, from: source, status: status) else { continue }
            let data = assembled.data ?? []
            let address = identity(of: received)
            let receipt = AdvertisingReceipt(
                address: address,
                privateAddress: address == received ? nil : received,
                rssi: report.rssi,
                isConnectable: type.contains(.connectable),
                isScannable: type.contains(.scannable),
                isLegacy: type.contains(.legacyPDU),
                isScanResponse: type.contains(.scanResponse),
                isTruncated: assembled.isTruncated,
                advertisingSetIdentifier: report.advertisingSID == 0xFF ? nil : report.advertisingSID,
                data: assembled.data == nil ? report.data : data.rawSpan
            )
            deliver(receipt)
        }
    }

    private func deliver(_ receipt: borrowing AdvertisingReceipt) {
        if receipt.isConnectable { met(receipt.address, at: receipt.privateAddress ?? receipt.address) }
        guard let matches = scan.receive(receipt, at: loop.now) else { return }
        let event = scan.scans.event(of: matches)
        if turn.isIdle, matches.isSingle {
            // Observers have the order of their scans, so no lookup is needed.
            let deliver = scanObservers.values[matches.first]
            let phase = beginDelivery()
            deliver(event)
            turn.phase = phase
        } else {
            for scan in scan.scans.scans(of: matches) { deliver(.scanEvent(scan, event)) }
        }
    }
}
