import BLEHCI
import BluetoothTypes

extension GAPEngine {
    // MARK: Attempts of apps

    mutating func beginAttempt(_ attempt: ConnectionAttempt, _ context: GAPContext) -> [GAPEffect] {
        var attempt = attempt
        attempt.usesCodedPHY = scanning.scans.wasReceivedOnCodedPHY(attempt.addresses)
        connecting.add(attempt)
        requestAddressPass(context)
        requestConnectionPass(context)
        if needsResolutionScan { requestScanPass(context) }
        return takeEffects()
    }

    /// Ends an attempt that has not led to a connection. Does nothing if it has ended.
    mutating func endAttempt(_ attempt: UInt64, _ error: HostError, _ context: GAPContext) -> [GAPEffect] {
        perform(connecting.endAttempt(attempt, error, at: context.now), context)
        return takeEffects()
    }

    // MARK: Links

    /// Handles a link that counts as a connection from now on, and gives it to the attempts that wait for one.
    ///
    /// - Parameter addresses: all addresses of the peer.
    mutating func linkCountsAsConnection(
        _ link: LinkIdentifier,
        with addresses: Set<DeviceAddress>,
        _ context: GAPContext
    ) -> [GAPEffect] {
        if fulfilAttempts(with: link, addresses) {
            requestConnectionPass(context)
            requestScanPass(context)
        }
        return takeEffects()
    }

    /// Handles a new link.
    ///
    /// - Parameters:
    ///   - isCentral: whether this host has initiated it.
    ///   - isFromReceivedTrain: whether the peer has requested it in a train that this host receives.
    ///   - addresses: all addresses of the peer; nil if the link does not count as a connection.
    mutating func linkBegan(
        _ link: LinkIdentifier,
        asCentral isCentral: Bool,
        fromReceivedTrain isFromReceivedTrain: Bool = false,
        with addresses: Set<DeviceAddress>?,
        _ context: GAPContext
    ) -> [GAPEffect] {
        addressesOfComingLinks[link.handle] = nil
        let hasOtherPHY = mayHaveOtherPHY(asCentral: isCentral, addresses ?? [])
        if context.controller?.usesExtendedCommands == true, isFromReceivedTrain || hasOtherPHY { add(.readPHYs(link)) }
        // The attempts are removed before the initiation is recorded as ended, so that the next pass does not initiate
        // to this peer again.
        let parameters = isCentral ? connecting.lastInitiation?.parameters : nil
        let isWanted = addresses.map { fulfilAttempts(with: link, $0, initiatedWith: parameters) } ?? false
        if isCentral {
            connecting.connected(at: context.now)
            if !isWanted { add(.endUnwantedLink(link)) }
        } else if context.controller?.usesExtendedCommands == false {
            // For an advertising set, an event of its own follows.
            advertising.endedByConnection()
            requestAdvertisingPass(context)
        }
        receptionLinkBegan(link, context)
        requestConnectionPass(context)
        requestScanPass(context)
        return takeEffects()
    }

    /// Handles a Connection Complete event with an error.
    ///
    /// - Parameters:
    ///   - peer: the address in the event.
    ///   - isCentral: the role in the event. While nothing is initiated, an event for the peripheral role has no
    ///     effect.
    mutating func connectionFailed(
        _ status: HCIErrorCode,
        of peer: DeviceAddress,
        asCentral isCentral: Bool,
        _ context: GAPContext
    ) -> [GAPEffect] {
        perform(connecting.connectionFailed(status, of: peer, asCentral: isCentral, at: context.now), context)
        return takeEffects()
    }

    /// Handles the end of a link.
    ///
    /// - Parameter addresses: all addresses of the peer.
    mutating func linkEnded(
        _ link: LinkIdentifier,
        with addresses: Set<DeviceAddress>,
        _ context: GAPContext
    ) -> [GAPEffect] {
        forgetReports(of: addresses)
        receptionLinkEnded(link)
        if connecting.linkEnded(link) { requestConnectionPass(context) }
        // The controller may be able to advertise now.
        advertising.linkEnded()
        requestAdvertisingPass(context)
        return takeEffects()
    }

    /// Has the plan try again when this link has ended.
    mutating func retryInitiating(afterEndOf link: LinkIdentifier) {
        connecting.retry(afterEndOf: link)
    }

    /// Gives a link to the attempts that wait for a connection to its peer.
    ///
    /// - Parameter parameters: the parameters with which this host has initiated the link; nil if it has not. They may
    ///   be those of an attempt for another peer.
    /// - Returns: whether there were any attempts.
    private mutating func fulfilAttempts(
        with link: LinkIdentifier,
        _ addresses: Set<DeviceAddress>,
        initiatedWith parameters: ConnectionParameters? = nil
    ) -> Bool {
        let attempts = connecting.takeAttempts(forAnyOf: addresses)
        if let parameters, let oldest = attempts.first, oldest.parameters != parameters {
            add(.requestParameters(link, oldest.parameters))
        }
        for attempt in attempts { add(.connected(attempt, link)) }
        return !attempts.isEmpty
    }

    /// Whether a new link may have another PHY than LE 1M: that of the packets with which it was made.
    ///
    /// A link that this host has initiated to a peer that no scan of an app has received counts as one on LE 1M.
    private mutating func mayHaveOtherPHY(asCentral isCentral: Bool, _ addresses: Set<DeviceAddress>) -> Bool {
        guard isCentral else { return advertising.mayConnectOnOtherPHY }
        if let initiation = connecting.lastInitiation {
            if let train = initiation.train { return train.phy != .le1M }
            if initiation.usesCodedPHY { return true }
        }
        return scanning.scans.usesOtherSecondaryPHY(addresses)
    }

    // MARK: Passes

    /// Requests a pass of the connection plan. If nothing is to be initiated, requests a scan pass instead, because
    /// scanning may have waited for an initiation that the controller no longer runs.
    mutating func requestConnectionPass(_ context: GAPContext) {
        guard context.isOn else { return }
        guard connecting.mayInitiate else { return requestScanPass(context) }
        if connecting.requestRun() { add(.schedulePass(.connection)) }
    }

    /// Sends the plan's next command. If there is none, a change of addresses may begin that waits for initiating.
    mutating func connectionPass(_ context: GAPContext) {
        guard let controller = context.controller else { return connecting.endRun() }
        // Read before `nextCommand` changes it.
        let isBeforeInitiation = connecting.isBeforeInitiation
        let next = connecting.nextCommand(connectionContext(controller), at: context.now)
        // Scanning may have to stop for this initiation, or may begin because there is none.
        if isBeforeInitiation { requestScanPass(context) }
        if let next { add(.send(next)) } else { continueWithAddressesIfAtRest(context) }
    }

    func connectionContext(_ controller: ControllerInformation) -> ConnectionPlan.Context {
        let isScanWanted = !scanning.scans.isEmpty || scanning.isSynchronizing || needsResolutionScan
        return ConnectionPlan.Context(
            usesExtendedCommands: controller.usesExtendedCommands,
            canInitiateOnCodedPHY: controller.canUseCodedPHY,
            ownAddressType: addresses.ownAddresses(controller).type,
            acceptListSize: controller.filterAcceptListSize,
            isHeld: addresses.hold != .nothing,
            unresolvedPeers: unresolvedPeers,
            peersWithIdentityTypes: peersWithIdentityTypes(controller),
            isScanning: !scanning.isResting,
            canInitiateWhileScanning: controller.canScanWhileInitiating(actively: scanning.mayScanActively),
            isScanKeptWaiting: isScanWanted
                && !controller.canScanWhileInitiating(actively: scanning.wanted?.isActive ?? false),
            trains: runningTrains
        )
    }

    /// The running trains of attempts in subevents.
    private var runningTrains: [AdvertisementIdentifier: RunningTrain] {
        guard connecting.hasSubeventAttempts else { return [:] }
        return connecting.attempts.reduce(into: [:]) { trains, attempt in
            guard let advertisement = attempt.subevent?.advertisement else { return }
            trains[advertisement] = advertising.runningTrain(of: advertisement)
        }
    }

    mutating func connectionCommandEnded(_ step: GAPStep, _ failure: CommandFailure?, _ context: GAPContext) {
        guard let failure else { return perform(connecting.finished(step, at: context.now), context) }
        let effects = connecting.failed(step, failure, at: context.now)
        // A refusal of LE Coded is reported when it is confirmed.
        if !connecting.codedRefusal.isSuspected(by: failure) { add(.report(.ignored(failure))) }
        perform(effects, context)
    }

    mutating func perform(_ effects: [ConnectionEffect], _ context: GAPContext) {
        var hasFailed = false
        for effect in effects {
            switch effect {
            case .fail(let attempt, let error):
                add(.attemptFailed(attempt, error))
                forgetReports(of: attempt.addresses)
                hasFailed = true
            case .useExistingLink(let addresses): add(.findLink(addresses))
            case .codedRefused(let failure): add(.report(.codedRefused(failure)))
            case .run: requestConnectionPass(context)
            case .runScan: requestScanPass(context)
            }
        }
        if hasFailed, scanning.isResolvingPeers { requestScanPass(context) }
    }

    // MARK: Peers

    /// Whether peers to connect to must be found by scanning first.
    var needsResolutionScan: Bool {
        !addresses.resolver.keys.isEmpty && connecting.attempts.contains { mustBeFound($0) }
    }

    /// Whether a peer of an attempt must be found by scanning first.
    private func mustBeFound(_ attempt: ConnectionAttempt) -> Bool {
        attempt.subevent == nil
            && attempt.addresses.contains {
                connecting.foundPeers[$0] == nil && addresses.mustBeResolvedByScan($0)
            }
    }

    /// Whether a peer or a train that the host searches for was received on the LE Coded PHY.
    var searchesOnCodedPHY: Bool {
        if synchronizing.searchesOnCodedPHY { return true }
        return !addresses.resolver.keys.isEmpty
            && connecting.attempts.contains { $0.usesCodedPHY && mustBeFound($0) }
    }

    /// The peers of attempts that must be found by scanning.
    private var unresolvedPeers: Set<DeviceAddress> {
        guard !addresses.resolver.keys.isEmpty else { return [] }
        return connecting.attempts.reduce(into: []) {
            guard $1.subevent == nil else { return }
            $0.formUnion($1.addresses.filter { addresses.mustBeResolvedByScan($0) })
        }
    }

    /// The peers of attempts that are named by identity address types. On controllers without privacy modes, these
    /// types say that the peer uses private addresses (Vol 4, Part E, 7.8.12).
    private func peersWithIdentityTypes(_ controller: ControllerInformation) -> Set<DeviceAddress> {
        guard let list = addresses.list, list.isResolving, !controller.commands.contains(LESetPrivacyMode.self) else {
            return []
        }
        return connecting.attempts.reduce(into: []) { $0.formUnion($1.addresses.filter { list.resolves($0) }) }
    }
}
