import BLEHCI
import BluetoothTypes

extension GAPEngine {
    // MARK: Advertisements of apps

    /// Adds an advertisement.
    ///
    /// - Parameters:
    ///   - controller: the properties of the controller, from when it was last up.
    ///   - call: finished when the advertisement has started.
    mutating func startAdvertising(
        _ advertisement: AdvertisementIdentifier,
        _ configuration: AdvertisementConfiguration,
        on controller: ControllerInformation,
        for call: CallToken,
        _ context: GAPContext
    ) throws(HostError) -> [GAPEffect] {
        let handle = try advertising.start(advertisement, configuration, controller, for: call)
        if let configuration = configuration.periodic?.subevents {
            subevents.add(advertisement, handle: handle, configuration)
        }
        // The controller has one random address for all legacy advertising.
        if configuration.address != nil, !controller.usesExtendedCommands { requestAddressPass(context) }
        requestAdvertisingPass(context)
        return takeEffects()
    }

    /// Ends an advertisement. Does nothing if it has ended.
    mutating func stopAdvertising(_ advertisement: AdvertisementIdentifier, _ context: GAPContext) -> [GAPEffect] {
        perform(advertising.stop(advertisement, isOn: context.isOn), context)
        removeEndedSubevents()
        perform(connecting.advertisementEnded(advertisement), context)
        requestAdvertisingPass(context)
        return takeEffects()
    }

    /// Replaces the data of an advertisement's periodic train.
    mutating func setPeriodicData(
        _ data: AdvertisingData,
        of advertisement: AdvertisementIdentifier,
        on controller: ControllerInformation,
        _ context: GAPContext
    ) throws(HostError) -> [GAPEffect] {
        try advertising.setPeriodicData(data, of: advertisement, controller)
        requestAdvertisingPass(context)
        return takeEffects()
    }

    // MARK: Events

    /// Handles the end of an advertising set by the controller (Vol 4, Part E, 7.7.65.18).
    ///
    /// - Parameter connection: the connection that ended the set; nil if none did.
    mutating func advertisingSetEnded(
        _ handle: UInt8,
        by connection: ConnectionHandle?,
        _ context: GAPContext
    ) -> [GAPEffect] {
        perform(advertising.terminated(handle, by: connection), context)
        requestAdvertisingPass(context)
        return takeEffects()
    }

    // MARK: Passes

    /// Requests a pass of the advertising plan.
    mutating func requestAdvertisingPass(_ context: GAPContext) {
        if context.isOn, advertising.requestRun() { add(.schedulePass(.advertising)) }
    }

    mutating func advertisingPass(_ context: GAPContext, _ random: inout some RandomNumberGenerator) {
        guard let controller = context.controller else { return }
        let plan = AdvertisingPlan.Context(
            information: controller,
            addresses: addresses.ownAddresses(controller)
        )
        if let next = advertising.nextCommand(plan, &addresses.resolver, &random) {
            add(.send(next))
        } else {
            continueWithAddressesIfAtRest(context)
        }
    }

    mutating func advertisingCommandEnded(_ step: GAPStep, _ failure: CommandFailure?, _ context: GAPContext) {
        if let failure {
            perform(advertising.failed(step, failure, at: context.now, hasLinks: context.hasLinks), context)
        } else {
            perform(advertising.finished(step, at: context.now), context)
        }
        // A train may run now in which a connection is to be requested.
        if connecting.hasSubeventAttempts { requestConnectionPass(context) }
    }

    mutating func perform(_ effects: [AdvertisingEffect], _ context: GAPContext) {
        if !effects.isEmpty { removeEndedSubevents() }
        for effect in effects {
            switch effect {
            case .finish(let call, let error): add(.finish(call, error))
            case .reconsiderAddresses: requestAddressPass(context)
            case .ownAddressKnown(let handle, let address):
                guard let address = address ?? context.controller?.identityAddress else { continue }
                add(.ownAddressKnown(handle, address))
            case .retryLater(let failure): add(.report(.advertisementFailed(failure)))
            case .ignore(let failure): add(.report(.ignored(failure)))
            }
        }
    }
}
