import BluetoothTypes

extension GAPEngine {
    // MARK: Scans of apps

    mutating func startScan(_ scan: ScanIdentifier, _ options: ScanOptions, _ context: GAPContext) -> [GAPEffect] {
        scanning.scans.insert(scan, options)
        runScanning(context)
        return takeEffects()
    }

    /// Ends a scan; nothing is reported. Does nothing if it has ended.
    mutating func stopScan(_ scan: ScanIdentifier, _ context: GAPContext) -> [GAPEffect] {
        if scanning.scans.remove(scan) { runScanning(context) }
        return takeEffects()
    }

    /// Makes one scan report peers again that are received from now on.
    ///
    /// - Parameter peers: the addresses of the peers; nil for all peers.
    mutating func reportAgain(
        _ peers: Set<DeviceAddress>?,
        in scan: ScanIdentifier,
        _ context: GAPContext
    ) -> [GAPEffect] {
        if scanning.scans.forget(peers, in: scan) { runScanning(context) }
        return takeEffects()
    }

    /// Makes all scans report peers again that are received from now on, because their link or an attempt to connect to
    /// them has ended.
    ///
    /// Otherwise an app that connects to the peers that its scan reports could connect to each of them only once.
    mutating func reportAgain(_ peers: Set<DeviceAddress>, _ context: GAPContext) {
        if scanning.scans.forget(peers) { runScanning(context) }
    }

    // MARK: Reports

    /// The identity address of the device that uses an address. Nil if its packets are ignored in network privacy mode:
    /// see ``AddressPlan/isSilenced(_:)``.
    ///
    /// - Parameter address: the address as it was received.
    mutating func identityOfAdvertiser(at address: DeviceAddress) -> DeviceAddress? {
        if addresses.settings.privacyMode == .network, addresses.isSilenced(address) { return nil }
        return identity(of: address)
    }

    /// Whether connectable advertisements are to be passed to ``met(_:at:_:)``.
    var seeksPeers: Bool { scanning.isResolving }

    /// Handles a connectable advertisement. If the host searches for its sender, the controller connects to the address
    /// that the sender uses now.
    mutating func met(_ identity: DeviceAddress, at address: DeviceAddress, _ context: GAPContext) -> [GAPEffect] {
        guard scanning.isResolving, connecting.isResolving(identity), addresses.mustBeSought(identity) else {
            return []
        }
        connecting.found(identity, at: address, context.now)
        runConnecting(context)
        runScanning(context)
        return takeEffects()
    }

    /// Handles the end of a scan by the controller itself (Vol 4, Part E, 7.7.65.17).
    mutating func scanEndedByController(_ context: GAPContext) -> [GAPEffect] {
        scanning.endedByController(at: context.now)
        runScanning(context)
        return takeEffects()
    }

    // MARK: Passes

    /// Has the plan bring the controller's scanning to what the scans need.
    mutating func runScanning(_ context: GAPContext) {
        guard context.controller != nil else { return }
        guard scanning.mayScan || connecting.mayInitiate else {
            scanning.forgetSilenceUnlessWanted()
            return continueWhenAtRest(context)
        }
        if scanning.requestRun() { add(.schedulePass(.scan)) }
    }

    /// Sends the plan's next command. If there is none, other activities may begin that wait for scanning.
    mutating func scanPass(_ context: GAPContext) {
        if let controller = context.controller, let next = scanning.nextCommand(scanContext(controller, context)) {
            return add(.send(next))
        }
        scanning.endRun()
        continueWhenAtRest(context)
        if connecting.scanPassEnded() { runConnecting(context) }
    }

    private mutating func scanContext(_ controller: ControllerInformation, _ context: GAPContext) -> ScanPlan.Context {
        let connection = connectionContext(controller)
        if connecting.updateTurns(connection, at: context.now) { runConnecting(context) }
        let isInitiating = connecting.controller != .idle || connecting.wantedInitiation(connection) != nil
        if !isInitiating { connecting.scanMayBegin() }
        return ScanPlan.Context(
            usesExtendedCommands: controller.usesExtendedCommands,
            ownAddressType: addresses.ownAddresses(controller).type,
            isResolving: isSeekingPeers,
            isHeld: addresses.hold != .nothing,
            isInitiating: isInitiating,
            canScanPassivelyWhileInitiating: controller.canScanWhileInitiating(actively: false),
            canScanActivelyWhileInitiating: controller.canScanWhileInitiating(actively: true)
        )
    }

    mutating func scanCommandEnded(_ step: GAPStep, _ failure: CommandFailure?, _ context: GAPContext) {
        if let failure {
            perform(scanning.failed(step, failure, at: context.now), context)
        } else {
            scanning.finished(step, at: context.now)
        }
    }

    mutating func perform(_ effects: [ScanEffect], _ context: GAPContext) {
        for effect in effects {
            switch effect {
            case .end(let scan, let failure): add(.endScan(scan, .command(failure)))
            case .restart(let silence):
                add(.scanRestarted(afterSilence: silence))
                runScanning(context)
            case .reset(let silence): add(.resetSilentController(silence))
            }
        }
    }
}
