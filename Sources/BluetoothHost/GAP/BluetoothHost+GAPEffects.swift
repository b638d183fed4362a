import BLEHCI
import BluetoothTypes

// The connection between the host and its GAP engine: inputs of the engine, and their effects.
extension BluetoothHost {
    /// What inputs of the engine depend on.
    var gapContext: GAPContext {
        GAPContext(
            now: loop.now,
            controller: power == .on ? information : nil,
            hasLinks: !links.isEmpty,
            hasBroadcasts: !isochronous.broadcasts.groups.isEmpty,
            ownKey: bonds.identity.resolvingKey,
            bonds: bonds.records
        )
    }

    // MARK: Inputs

    /// Gives a plan the reply to its command: a failure, or nil for success.
    func planCommandEnded(_ step: GAPStep, _ failure: CommandFailure?) {
        session.planCommandEnded(step, failure)
        perform(gap.commandEnded(step, failure, gapContext))
    }

    func gapDeadlineReached() {
        perform(gap.advance(gapContext, &random))
    }

    func prepareAddresses(_ controller: ControllerInformation) {
        perform(gap.prepareAddresses(controller, gapContext, &random))
        endInput()
    }

    private func runPass(of plan: GAPPlan) {
        perform(gap.runPass(of: plan, gapContext, &random))
        endInput()
    }

    // MARK: Effects

    /// Performs the effects of an input of the engine, and sets the timer for its deadline.
    func perform(_ effects: [GAPEffect]) {
        setTimer(of: .gap, to: power == .closed ? nil : gap.deadline(isOn: power == .on))
        for effect in effects { perform(effect) }
    }

    private func perform(_ effect: GAPEffect) {
        switch effect {
        case .schedulePass(let plan): loop.execute { self.assumeIsolated { $0.runPass(of: plan) } }
        case .send(let next):
            endInput()
            session.enable(next.events, by: next.step)
            submit(CommandRequest(next.command, .plan(next.step)))
        case .endScan(let scan, let error): endScan(scan, error)
        case .scanRestarted(let silence): emit(HostEvent.scanRestarted(afterSilence: silence))
        case .synchronized(let identifier, let train):
            deliver(.synchronizationEvent(identifier, .synchronized(train)))
        case .synchronizationLost(let identifier): deliver(.synchronizationEvent(identifier, .lost))
        case .endSynchronization(let identifier, let error): endSynchronization(identifier, error)
        case .subeventEvent(let advertisement, let event): report(event, of: advertisement)
        case .receptionReady(let reception): deliver(.receptionReady(reception))
        case .transferred(let reception, let synchronization): transferred(synchronization, to: reception)
        case .transferFailed(let reception, let link, let serviceData, let status):
            transferFailed(link, serviceData, status, to: reception)
        case .endReception(let reception, let error): endReception(reception, error)
        case .receptionLinkEnded(let reception, let link): endReception(reception, endOfLink(link))
        case .connected(let attempt, let link): end(attempt, .success(link))
        case .attemptFailed(let attempt, let error): end(attempt, .failure(error))
        case .findLink(let addresses): findLink(to: addresses)
        case .requestParameters(let link, let parameters): requestInitialParameters(parameters, of: link)
        case .readPHYs(let link): readPHYs(of: link)
        case .endUnwantedLink(let identifier):
            if let link = links[identifier] { giveUp(link, .controller(.connectionTerminatedByLocalHost)) }
        case .finish(let call, let error): end(call, error.map { .failure($0) } ?? .success)
        case .ownAddressKnown(let handle, let address): ownAddressKnown(handle, address)
        case .setAddressResolution(let isSupported): services.setAddressResolution(isSupported)
        case .addressesPrepared(let failure): perform(session.addressesPrepared(failure, at: loop.now))
        case .resetSilentController(let silence): controllerFailed("its scan has been silent for \(silence)")
        case .report(let report): log(report)
        }
    }

    private func log(_ report: GAPReport) {
        switch report {
        case .advertisementFailed, .addressRefused: logger.warning("\(report)")
        case .resolvedByHost, .codedRefused: logger.info("\(report)")
        case .ignored: logger.debug("\(report)")
        }
    }
}
