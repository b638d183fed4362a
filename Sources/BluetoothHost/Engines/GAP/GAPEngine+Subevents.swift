import BLEByteCoding
import BLEHCI
import BluetoothTypes

// The subevents of this host's periodic trains.
extension GAPEngine {
    // MARK: Calls of apps

    /// Queues data for subevents of an advertisement's train.
    ///
    /// - Parameter call: finished when the controller has accepted the data.
    mutating func sendSubeventData(
        _ data: [PeriodicSubeventData],
        of advertisement: AdvertisementIdentifier,
        for call: CallToken,
        _ context: GAPContext
    ) throws(HostError) -> [GAPEffect] {
        try checkSubevents(of: advertisement)
        try subevents.send(data, of: advertisement, for: call)
        requestSubeventPass(context)
        return takeEffects()
    }

    /// The subevents of an advertisement's train whose data the controller waits for.
    ///
    /// - Throws: ``HostError/closed`` if the advertisement has ended, and ``HostError/invalidArgument(_:)`` if it has
    ///   no subevents.
    func openSubeventRequests(of advertisement: AdvertisementIdentifier) throws(HostError) -> [UInt8] {
        try checkSubevents(of: advertisement)
        return try subevents.openRequests(of: advertisement)
    }

    private func checkSubevents(of advertisement: AdvertisementIdentifier) throws(HostError) {
        guard advertising.isActive(advertisement) else { throw .closed }
        guard subevents.advertisements.contains(advertisement) else {
            throw .invalidArgument("the advertisement has no subevents")
        }
    }

    // MARK: Events

    /// Handles the controller's request for the data of subevents.
    mutating func subeventDataRequested(
        _ event: LEPeriodicAdvertisingSubeventDataRequest,
        _ context: GAPContext
    ) -> [GAPEffect] {
        perform(subevents.requested(event))
        requestSubeventPass(context)
        return takeEffects()
    }

    /// Reports the responses of a report.
    mutating func subeventResponses(_ responses: [SubeventEffect]) -> [GAPEffect] {
        perform(responses)
        return takeEffects()
    }

    // MARK: Passes

    private mutating func requestSubeventPass(_ context: GAPContext) {
        if context.isOn, subevents.requestRun() { add(.schedulePass(.subevents)) }
    }

    mutating func subeventPass() {
        if let next = subevents.nextCommand() { add(.send(next)) }
    }

    mutating func subeventCommandEnded(_ step: GAPStep, _ failure: CommandFailure?) {
        perform(failure.map { subevents.failed(step, $0) } ?? subevents.finished(step))
    }

    /// Removes the trains of advertisements that have ended.
    mutating func removeEndedSubevents() {
        let ended = subevents.advertisements.filter { !advertising.isActive($0) }
        if !ended.isEmpty { perform(subevents.remove(ended, .closed)) }
    }

    mutating func perform(_ effects: [SubeventEffect]) {
        for effect in effects {
            switch effect {
            case .finish(let call, let error): add(.finish(call, error))
            case .event(let advertisement, let event): add(.subeventEvent(advertisement, event))
            case .ignore(let failure): add(.report(.ignored(failure)))
            }
        }
    }
}
