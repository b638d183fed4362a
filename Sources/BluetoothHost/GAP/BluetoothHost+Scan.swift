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
        if scanner.sessions.isEmpty { scanner.advertisers.removeAll() }
        scanner.sessions[identifier] = ScanSession(options: options, deliver: deliver)
        scanner.newest = identifier
        reconcileScan()
        return identifier
    }

    package func stopScan(_ identifier: ScanIdentifier) {
        guard scanner.sessions.removeValue(forKey: identifier) != nil else { return }
        reconcileScan()
    }

    /// Starts a pass that changes the controller's scanning to what the scans request.
    func reconcileScan() {
        guard power == .on else { return }
        guard scanner.mayScan || connector.mayInitiate else {
            scanner.forgetSilenceUnlessWanted()
            return resumeRestWaiters()
        }
        guard scanner.reconciliation.request() else { return }
        spawn { await $0.runScanReconciliation() }
    }

    private func runScanReconciliation() async {
        defer {
            resumeRestWaiters()
            scanPassEnded()
        }
        while scanner.reconciliation.next() {
            guard power == .on, let information else { continue }
            scanner.isSeeking = !soughtPeers.isEmpty
            scanner.forgetSilenceUnlessWanted()
            let window = connectorWindow(information)
            superviseConnectionTurns(window, information)
            var wanted = privacy.hold == .nothing ? scanner.wanted : nil
            if let parameters = wanted, connector.state != .idle || wantedInitiation(for: window) != nil,
                !information.canScanWhileInitiating(actively: parameters.isActive)
            {
                wanted = nil
            }
            guard wanted != scanner.applied else { continue }
            let generation = generation
            do throws(CommandFailure) {
                if scanner.applied != nil {
                    try await setScanEnabled(false, filtersDuplicates: false)
                    scanner.pause(at: loop.now)
                }
                if let wanted {
                    try await setScanParameters(wanted)
                    try await setScanEnabled(true, filtersDuplicates: wanted.filtersDuplicates)
                    // If the controller failed after its answer, the next one does not have this state.
                    guard generation == self.generation else { continue }
                    scanner.begin(wanted, at: loop.now)
                }
                watchForSilence()
            } catch {
                guard power == .on else { continue }
                endScans(.command(error))
                endInput()
            }
        }
    }

    private func setScanParameters(_ parameters: Scanner.Parameters) async throws(CommandFailure) {
        guard let information else { return }
        let type: ScanType = parameters.isActive ? .active : .passive
        if information.usesExtendedCommands {
            try await perform(
                LESetExtendedScanParameters(
                    ownAddressType: ownAddressType,
                    le1M: .init(scanType: type, scanInterval: parameters.interval, scanWindow: parameters.window)
                )
            )
        } else {
            try await perform(
                LESetScanParameters(
                    leScanType: type,
                    leScanInterval: parameters.interval,
                    leScanWindow: parameters.window,
                    ownAddressType: ownAddressType
                )
            )
        }
    }

    private func setScanEnabled(_ isEnabled: Bool, filtersDuplicates: Bool) async throws(CommandFailure) {
        if information?.usesExtendedCommands == true {
            try await perform(
                LESetExtendedScanEnable(enable: isEnabled, filterDuplicates: filtersDuplicates ? .enabled : .disabled)
            )
        } else {
            try await perform(LESetScanEnable(leScanEnable: isEnabled, filterDuplicates: filtersDuplicates))
        }
    }

    /// Ends all scans.
    func endScans(_ error: HostError) {
        for session in scanner.sessions.values { deliver(.scanEnd(session.deliver, error)) }
        scanner.sessions.removeAll()
    }

    /// Makes all scans report peers again that are received from now on, because their link or an attempt to connect to
    /// them has ended.
    ///
    /// Otherwise an app that connects to the peers that its scan reports could connect to each of them only once.
    func reportAgain(_ addresses: Set<DeviceAddress>) {
        if scanner.forget(addresses) { reconcileScan() }
    }

    /// Makes one scan report peers again that are received from now on, because its app could not take the earlier
    /// reports.
    ///
    /// - Parameter addresses: the addresses of the peers; nil for all peers.
    package func reportAgain(_ addresses: Set<DeviceAddress>?, in scan: ScanIdentifier) {
        if scanner.forget(addresses, in: scan) { reconcileScan() }
    }

    func scanEndedByController() {
        scanner.pause(at: loop.now)
        reconcileScan()
    }

    // MARK: Silence

    /// Restarts a scan that receives nothing for a long time, because the controller may have stopped listening. If
    /// that does not help and no link shows that the controller works, resets the controller. The silent time is summed
    /// over the turns of a scan.
    private func watchForSilence() {
        timers.cancel(scanner.silenceTimer)
        scanner.silenceTimer = nil
        guard scanner.applied != nil, let timeout = configuration.scanSilenceTimeout else { return }
        scanner.silenceTimer = schedule(.scanSilence, at: scanner.lastActivity + timeout)
    }

    func checkForSilence() {
        scanner.silenceTimer = nil
        guard scanner.applied != nil, power == .on, let timeout = configuration.scanSilenceTimeout else { return }
        guard loop.now - scanner.lastActivity >= timeout else { return watchForSilence() }
        if scanner.hasRestartedInSilence, links.isEmpty {
            scanner.hasRestartedInSilence = false
            return controllerFailed("its scan has been silent for \(timeout * 2)")
        }
        scanner.hasRestartedInSilence = true
        emit(HostEvent.scanRestarted(afterSilence: timeout))
        spawn { await $0.restartScan() }
    }

    private func restartScan() async {
        do throws(CommandFailure) {
            try await setScanEnabled(false, filtersDuplicates: false)
        } catch {
            logger.debug("\(error)")
        }
        scanner.restart()
        reconcileScan()
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
            guard let assembled = scanner.assembler.receive(report.data, from: source, status: status) else { continue }
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
        guard let matches = scanner.receive(receipt, at: loop.now) else { return }
        if turn.isIdle, let deliver = scanner.deliver(of: matches) {
            let event = scanner.event(of: matches)
            let phase = beginDelivery()
            deliver(event)
            turn.phase = phase
        } else {
            let event = scanner.event(of: matches)
            for scan in scanner.scans(of: matches) { deliver(.scanEvent(scan, event)) }
        }
    }
}
