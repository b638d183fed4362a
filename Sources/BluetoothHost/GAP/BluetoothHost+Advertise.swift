import BluetoothTypes
import ByteCoding
import HCI

extension BluetoothHost {
    /// Starts an advertisement, which continues after connections and recoveries of the controller until it is stopped.
    ///
    /// - Throws: ``HostError/cancelled`` at once if the task is cancelled. The advertisement is then stopped, or never starts.
    package func startAdvertising(
        _ configuration: AdvertisementConfiguration
    ) async throws(HostError) -> AdvertisementIdentifier {
        let identifier = AdvertisementIdentifier(value: makeIdentifier())
        try await wait(for: .startOfAdvertisement(identifier)) { host, call in
            do throws(HostError) {
                try host.begin(identifier, configuration, for: call)
            } catch {
                host.end(call, .failure(error))
            }
        }
        return identifier
    }

    private func begin(
        _ identifier: AdvertisementIdentifier,
        _ configuration: AdvertisementConfiguration,
        for call: CallToken
    ) throws(HostError) {
        guard power != .closed else { throw .closed }
        guard power != .off, let information else { throw .notReady }
        try check(configuration, against: information)
        let limit = information.numberOfAdvertisingSets
        guard advertiser.activeCount < limit, let handle = advertiser.freeHandle else {
            throw .notSupported(
                "this controller can advertise \(limit) set(s) at a time; stop another first"
            )
        }
        var entry = Advertiser.Entry(identifier: identifier, configuration: configuration, handle: handle)
        entry.calls.append(call)
        advertiser.entries.append(entry)
        reconcileAdvertising()
    }

    /// Stops an advertisement; connections made through it stay. Cancelling the task ends the wait; the advertisement is
    /// stopped nevertheless.
    package func stopAdvertising(_ identifier: AdvertisementIdentifier) async {
        endAdvertisement(identifier)
        _ = try? await wait(for: .endOfAdvertisement(identifier)) { host, call in
            guard let index = host.advertiser.index(of: identifier) else { return host.end(call, .success(())) }
            host.advertiser.entries[index].calls.append(call)
        }
    }

    func endAdvertisement(_ identifier: AdvertisementIdentifier) {
        guard let index = advertiser.index(of: identifier) else { return }
        advertiser.entries[index].phase = .ending
        reconcileAdvertising()
    }

    private func check(
        _ configuration: AdvertisementConfiguration,
        against information: ControllerInformation
    ) throws(HostError) {
        let interval = configuration.interval
        guard interval >= .milliseconds(20), interval <= .milliseconds(10_240) else {
            throw .invalidArgument("an advertising interval is 20 ms to 10.24 s, not \(interval)")
        }
        if let address = configuration.address, address.kind != .randomStatic {
            throw .invalidArgument("\(address) is not a static random address: its two highest bits must be set")
        }
        guard configuration.isConnectable || configuration.peer == nil else {
            throw .invalidArgument("an advertisement that is directed to a device is connectable")
        }
        let longest = max(configuration.advertisingData.length, configuration.scanResponseData.length)
        if configuration.usesExtendedPDUs(maximumLegacyLength: 31) {
            guard information.usesExtendedCommands else {
                throw .invalidArgument("advertising data has \(longest) bytes, more than this controller accepts")
            }
            let length = configuration.extendedAdvertisingData.length
            guard length <= information.maximumAdvertisingDataLength else {
                throw .invalidArgument(
                    "advertising data has \(length) bytes; this controller accepts at most "
                        + "\(information.maximumAdvertisingDataLength)"
                )
            }
        }
    }

    /// Starts a pass that changes the controller's advertising to the requested state.
    func reconcileAdvertising() {
        guard advertiser.reconciliation.request() else { return }
        spawn { await $0.runAdvertisingReconciliation() }
    }

    private func runAdvertisingReconciliation() async {
        defer { resumeRestWaiters() }
        while advertiser.reconciliation.next() {
            for identifier in advertiser.entries.map(\.identifier) {
                guard let index = advertiser.index(of: identifier) else { continue }
                let entry = advertiser.entries[index]
                if entry.phase == .ending {
                    if power == .on { await withdraw(entry) }
                    finish(identifier, .success(()), isGone: true)
                    reconcileAddresses()
                } else if privacy.hold == .everything {
                    await rest(entry)
                } else if power == .on, !waitsForAddress(entry),
                    [.new, .off, .stale].contains(entry.phase) || hasOldAddress(entry)
                {
                    await advance(entry, generation)
                }
            }
        }
    }

    /// Stops an advertisement while the host changes addresses in the controller.
    private func rest(_ entry: Advertiser.Entry) async {
        guard power == .on, [.on, .stale].contains(entry.phase) else { return }
        do throws(CommandFailure) {
            try await setEnabled(false, entry)
        } catch {
            logger.debug("\(error)")
        }
        setPhase(.off, of: entry.identifier)
    }

    /// - Parameter generation: the generation of the controller to which the entry belongs; it may have changed before
    ///   the call runs.
    private func advance(_ entry: Advertiser.Entry, _ generation: UInt64) async {
        guard generation == self.generation else { return }
        do throws(CommandFailure) {
            if entry.phase == .stale || entry.phase == .on { try await setEnabled(false, entry) }
            // The device that it is directed to may have another address now.
            if entry.phase == .new || entry.configuration.peer != nil { try await configure(entry) }
            if information?.usesExtendedCommands == true { try await setAddress(of: entry.identifier) }
            let endCount = advertiser.endCount
            try await setEnabled(true, entry)
            // If the controller failed after its answer, the next one does not have this advertisement.
            guard generation == self.generation else { return }
            // The connection's event may arrive before the command's completion.
            let isStillOn = advertiser.endCount == endCount
            setPhase(isStillOn ? .on : .off, of: entry.identifier)
            if !isStillOn { reconcileAdvertising() }
            refreshAdvertisingLater()
            finish(entry.identifier, .success(()), isGone: false)
        } catch {
            guard power == .on else { return }
            if case .status(let code, _) = error, !links.isEmpty,
                [.connectionLimitExceeded, .commandDisallowed, .memoryCapacityExceeded].contains(code)
            {
                setPhase(.blocked, of: entry.identifier)
                finish(entry.identifier, .success(()), isGone: false)
            } else {
                fail(entry, error)
            }
        }
    }

    /// Sets the timer that starts advertisements again from time to time. If the event of a connection was lost, the
    /// controller has stopped advertising, and without this nobody could find the host again.
    private func refreshAdvertisingLater() {
        guard let interval = configuration.advertisingRefreshInterval else { return }
        timers.cancel(advertiser.refreshTimer)
        advertiser.refreshTimer = schedule(.advertisingRefresh, after: interval)
    }

    func refreshAdvertising() {
        advertiser.refreshTimer = nil
        guard power == .on else { return }
        for index in advertiser.entries.indices where advertiser.entries[index].phase == .on {
            advertiser.entries[index].phase = .stale
        }
        reconcileAdvertising()
    }

    /// Handles an advertisement that could not be started. If calls wait for its start, they fail and it ends;
    /// otherwise it is tried again later.
    private func fail(_ entry: Advertiser.Entry, _ failure: CommandFailure) {
        guard let index = advertiser.index(of: entry.identifier) else { return }
        // The next pass removes it from the controller.
        guard advertiser.entries[index].phase != .ending else { return }
        guard advertiser.entries[index].calls.isEmpty else {
            return finish(entry.identifier, .failure(.command(failure)), isGone: true)
        }
        logger.warning("an advertisement is off: \(failure); trying again")
        advertiser.entries[index].phase = .new
        guard !advertiser.isRetryDue else { return }
        advertiser.isRetryDue = true
        _ = schedule(.advertisingRetry, after: .seconds(1))
    }

    func retryAdvertising() {
        advertiser.isRetryDue = false
        reconcileAdvertising()
    }

    private func setPhase(_ phase: Advertiser.Phase, of identifier: AdvertisementIdentifier) {
        guard let index = advertiser.index(of: identifier), advertiser.entries[index].phase != .ending else { return }
        advertiser.entries[index].phase = phase
    }

    private func finish(_ identifier: AdvertisementIdentifier, _ result: Result<Void, HostError>, isGone: Bool) {
        guard let index = advertiser.index(of: identifier) else { return }
        let calls = advertiser.entries[index].calls
        advertiser.entries[index].calls = []
        if isGone { advertiser.entries.remove(at: index) }
        for call in calls { end(call, result) }
    }

    private func withdraw(_ entry: Advertiser.Entry) async {
        do throws(CommandFailure) {
            try await setEnabled(false, entry)
            if information?.usesExtendedCommands == true {
                try await perform(LERemoveAdvertisingSet(advertisingHandle: entry.handle))
            }
        } catch {
            logger.debug("\(error)")
        }
    }

    private func setEnabled(_ isEnabled: Bool, _ entry: Advertiser.Entry) async throws(CommandFailure) {
        if information?.usesExtendedCommands == true {
            try await perform(
                LESetExtendedAdvertisingEnable(enable: isEnabled, sets: [.init(advertisingHandle: entry.handle)])
            )
        } else {
            try await perform(LESetAdvertisingEnable(advertisingEnable: isEnabled))
        }
    }

    private func configure(_ entry: Advertiser.Entry) async throws(CommandFailure) {
        guard let information else { return }
        if information.usesExtendedCommands {
            try await configureExtended(entry, information)
        } else {
            try await configureLegacy(entry, information)
        }
    }

    private func configureLegacy(
        _ entry: Advertiser.Entry,
        _ information: ControllerInformation
    ) async throws(CommandFailure) {
        let configuration = entry.configuration
        let interval = configuration.interval.inUnits(of: .microseconds(625))
        let type: AdvertisingType =
            configuration.peer != nil
            ? .connectableLowDutyCycleDirected
            : configuration.isConnectable
                ? .connectableScannableUndirected
                : configuration.isScannable ? .scannableUndirected : .nonConnectableUndirected
        if let address = configuration.address, address != privacy.randomAddress {
            try await perform(LESetRandomAddress(randomAddress: address))
            privacy.randomAddress = address
        }
        let addressing = addressing(of: configuration, information)
        try await perform(
            LESetAdvertisingParameters(
                advertisingIntervalMin: interval,
                advertisingIntervalMax: interval,
                advertisingType: type,
                ownAddressType: addressing.ownType,
                peerAddress: addressing.peer
            )
        )
        guard configuration.peer == nil else { return }
        try await perform(
            LESetAdvertisingData(advertisingData: LegacyAdvertisingData(configuration.advertisingData.bytes))
        )
        if type != .nonConnectableUndirected {
            try await perform(
                LESetScanResponseData(scanResponseData: LegacyAdvertisingData(configuration.scanResponseData.bytes))
            )
        }
    }

    private func configureExtended(
        _ entry: Advertiser.Entry,
        _ information: ControllerInformation
    ) async throws(CommandFailure) {
        let configuration = entry.configuration
        let interval = UInt32(configuration.interval.inUnits(of: .microseconds(625)))
        let usesExtendedPDUs = configuration.usesExtendedPDUs(maximumLegacyLength: 31)
        let addressing = addressing(of: configuration, information)
        try await perform(
            LESetExtendedAdvertisingParameters(
                advertisingHandle: entry.handle,
                advertisingEventProperties: configuration.eventProperties(usesExtendedPDUs: usesExtendedPDUs),
                primaryAdvertisingIntervalMin: interval,
                primaryAdvertisingIntervalMax: interval,
                ownAddressType: addressing.ownType,
                peerAddress: addressing.peer,
                advertisingSID: entry.handle & 0x0F
            )
        )
        if let index = advertiser.index(of: entry.identifier) { advertiser.entries[index].address = nil }
        // Directed PDUs of Bluetooth 4 have no room for data.
        guard configuration.peer == nil || usesExtendedPDUs else { return }
        if usesExtendedPDUs {
            try await setExtendedData(configuration.extendedAdvertisingData.bytes, of: entry, isScanResponse: false)
            if configuration.isScannable && !configuration.isConnectable {
                try await setExtendedData(configuration.scanResponseData.bytes, of: entry, isScanResponse: true)
            }
        } else {
            try await setExtendedData(configuration.advertisingData.bytes, of: entry, isScanResponse: false)
            if configuration.isConnectable || configuration.isScannable {
                try await setExtendedData(configuration.scanResponseData.bytes, of: entry, isScanResponse: true)
            }
        }
    }

    /// Sets the current random address of an advertising set.
    private func setAddress(of identifier: AdvertisementIdentifier) async throws(CommandFailure) {
        guard let index = advertiser.index(of: identifier) else { return }
        let entry = advertiser.entries[index]
        guard let address = wantedAddress(of: entry.configuration), address != entry.address else { return }
        try await perform(LESetAdvertisingSetRandomAddress(advertisingHandle: entry.handle, randomAddress: address))
        if let index = advertiser.index(of: identifier) { advertiser.entries[index].address = address }
    }

    /// Sends data to the controller, in fragments that fit one command each (Vol 4, Part E, 7.8.54).
    private func setExtendedData(
        _ data: [UInt8],
        of entry: Advertiser.Entry,
        isScanResponse: Bool
    ) async throws(CommandFailure) {
        var rest = data[...]
        var isFirst = true
        repeat {
            let piece = Array(rest.prefix(AdvertisingDataFragment.maximumLength))
            rest = rest.dropFirst(piece.count)
            let operation: AdvertisingDataOperation =
                switch (isFirst, rest.isEmpty) {
                case (true, true): .complete
                case (true, false): .firstFragment
                case (false, true): .lastFragment
                case (false, false): .intermediateFragment
                }
            isFirst = false
            if isScanResponse {
                try await perform(
                    LESetExtendedScanResponseData(
                        advertisingHandle: entry.handle,
                        operation: operation,
                        scanResponseData: AdvertisingDataFragment(piece)
                    )
                )
            } else {
                try await perform(
                    LESetExtendedAdvertisingData(
                        advertisingHandle: entry.handle,
                        operation: operation,
                        advertisingData: AdvertisingDataFragment(piece)
                    )
                )
            }
        } while !rest.isEmpty
    }

    // MARK: Events

    /// Handles the end of legacy advertising by the connection that it caused (Vol 4, Part E, 7.8.9).
    func advertisingEndedByConnection() {
        guard information?.usesExtendedCommands == false else { return }
        advertiser.endCount += 1
        for index in advertiser.entries.indices where [.on, .stale].contains(advertiser.entries[index].phase) {
            if advertiser.entries[index].configuration.isConnectable { advertiser.entries[index].phase = .off }
        }
        reconcileAdvertising()
    }

    func advertisingSetTerminated(_ event: LEAdvertisingSetTerminated) {
        advertisementLed(to: event)
        advertiser.endCount += 1
        for index in advertiser.entries.indices
        where advertiser.entries[index].handle == event.advertisingHandle && advertiser.entries[index].phase == .on {
            advertiser.entries[index].phase = .off
        }
        reconcileAdvertising()
    }

    /// Tries blocked advertisements again after a link has ended: the controller may be able to advertise now.
    func retryBlockedAdvertising() {
        for index in advertiser.entries.indices where advertiser.entries[index].phase == .blocked {
            advertiser.entries[index].phase = .off
        }
        reconcileAdvertising()
    }
}
