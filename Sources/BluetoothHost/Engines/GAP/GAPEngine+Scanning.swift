import BluetoothTypes

extension GAPEngine {
    // MARK: Scans of apps

    /// Starts a scan. A scan on LE Coded alone ends at once if the controller has refused this PHY.
    mutating func startScan(_ scan: ScanIdentifier, _ options: ScanOptions, _ context: GAPContext) -> [GAPEffect] {
        if options.isOnCodedAlone, let refusal = scanning.codedRefusal {
            add(.endScan(scan, .command(refusal)))
            return takeEffects()
        }
        scanning.scans.insert(scan, options)
        requestScanPass(context)
        return takeEffects()
    }

    /// Ends a scan; nothing is reported. Does nothing if it has ended.
    mutating func stopScan(_ scan: ScanIdentifier, _ context: GAPContext) -> [GAPEffect] {
        if scanning.scans.remove(scan) { requestScanPass(context) }
        return takeEffects()
    }

    /// Makes one scan report peers again that are received from now on.
    ///
    /// - Parameter peers: the addresses of the peers; nil for all peers.
    mutating func reportAgain(_ peers: Set<DeviceAddress>?, in scan: ScanIdentifier) {
        scanning.scans.forget(peers, in: scan)
    }

    /// Makes all scans report peers again that are received from now on, because their link or an attempt to connect to
    /// them has ended.
    ///
    /// Otherwise an app that connects to the peers that its scan reports could connect to each of them only once.
    mutating func forgetReports(of peers: Set<DeviceAddress>) {
        scanning.scans.forget(peers)
    }

    // MARK: Reports

    /// Whether the host searches for a peer, so that its connectable advertisements are to be passed to
    /// ``resolved(_:at:_:)``. ``ScanPlan/isResolvingPeers`` says whether it searches for any.
    func awaitsResolution(of identity: DeviceAddress) -> Bool {
        scanning.isResolvingPeers && connecting.awaitsResolution(of: identity)
            && addresses.mustBeResolvedByScan(identity)
    }

    /// Handles a connectable advertisement of a peer that the host searches for. The controller connects to the address
    /// that the peer uses now.
    mutating func resolved(_ identity: DeviceAddress, at address: DeviceAddress, _ context: GAPContext) -> [GAPEffect] {
        guard awaitsResolution(of: identity) else { return [] }
        connecting.found(identity, at: address, context.now)
        requestConnectionPass(context)
        requestScanPass(context)
        return takeEffects()
    }

    /// Handles the end of a scan by the controller itself (Vol 4, Part E, 7.7.65.17).
    mutating func scanEndedByController(_ context: GAPContext) -> [GAPEffect] {
        scanning.endedByController(at: context.now)
        requestScanPass(context)
        return takeEffects()
    }

    // MARK: Passes

    /// Requests a pass of the scan plan, unless it has nothing to do.
    mutating func requestScanPass(_ context: GAPContext) {
        guard context.isOn else { return }
        guard scanning.mayScan || connecting.mayInitiate else {
            scanning.forgetSilenceUnlessWanted()
            return continueWithAddressesIfAtRest(context)
        }
        if scanning.requestRun() { add(.schedulePass(.scan)) }
    }

    /// Sends the plan's next command. If there is none, other activities may begin that wait for scanning.
    mutating func scanPass(_ context: GAPContext) {
        if let controller = context.controller, let next = scanning.nextCommand(updateTurnsForScan(controller, context))
        {
            return add(.send(next))
        }
        scanning.endRun()
        continueWithAddressesIfAtRest(context)
        if connecting.scanPassEnded() { requestConnectionPass(context) }
    }

    /// Brings the turns up to date, and returns the context of a scan pass.
    private mutating func updateTurnsForScan(_ controller: ControllerInformation, _ context: GAPContext)
        -> ScanPlan.Context
    {
        let connection = connectionContext(controller)
        if connecting.updateTurns(connection, at: context.now) { requestConnectionPass(context) }
        // Depends on `yieldsToScan`, which `updateTurns` may have changed.
        let isInitiating = connecting.controller != .idle || connecting.wantedInitiation(connection) != nil
        if !isInitiating { connecting.scanMayBegin() }
        return ScanPlan.Context(
            usesExtendedCommands: controller.usesExtendedCommands,
            canScanCodedPHY: controller.canUseCodedPHY,
            ownAddressType: addresses.ownAddresses(controller).type,
            isResolvingPeers: needsResolutionScan,
            searchesOnCodedPHY: searchesOnCodedPHY,
            isHeld: addresses.hold != .nothing,
            isInitiating: isInitiating,
            canScanPassivelyWhileInitiating: controller.canScanWhileInitiating(actively: false),
            canScanActivelyWhileInitiating: controller.canScanWhileInitiating(actively: true)
        )
    }

    mutating func scanCommandEnded(_ step: GAPStep, _ failure: CommandFailure?, _ context: GAPContext) {
        guard let failure else { return scanning.finished(step, at: context.now) }
        let isActive = scanning.wanted?.isActive ?? false
        let canScanBesideInitiation = context.controller?.canScanWhileInitiating(actively: isActive) ?? true
        let mayInitiate = connecting.isEndDoubtful && !canScanBesideInitiation
        perform(scanning.failed(step, failure, mayInitiate: mayInitiate, at: context.now), context)
    }

    mutating func perform(_ effects: [ScanEffect], _ context: GAPContext) {
        for effect in effects {
            switch effect {
            case .end(let scan, let failure): add(.endScan(scan, .command(failure)))
            case .restart(let silence):
                add(.scanRestarted(afterSilence: silence))
                requestScanPass(context)
            case .reset(let silence): add(.resetSilentController(silence))
            case .run: requestScanPass(context)
            case .cancelInitiation: if connecting.cancelAgain(at: context.now) { requestConnectionPass(context) }
            case .refused(let failure): add(.report(.ignored(failure)))
            case .codedRefused(let failure): add(.report(.codedRefused(failure)))
            }
        }
    }
}
