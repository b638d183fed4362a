import BLEHCI
import BluetoothTypes

// The commands about an advertisement.
extension AdvertisingPlan {
    /// Why an advertisement is turned off.
    enum Reason: Equatable {
        /// The host changes addresses in the controller.
        case pause
        case restart
        /// The advertisement ends.
        case end
    }

    /// What a command does to an advertisement.
    enum Purpose: Equatable {
        case turnOff(AdvertisementIdentifier, Reason)
        case setUp(AdvertisementIdentifier, SetupPart)
        case setAddress(AdvertisementIdentifier, DeviceAddress)
        case turnOn(AdvertisementIdentifier)
        case stopPeriodic(AdvertisementIdentifier)
        case updatePeriodicData(AdvertisementIdentifier, AdvertisingData)
        case remove(AdvertisementIdentifier)

        /// The events that the command enables.
        var events: LEEventMask { if case .setUp(_, .subeventEvents) = self { .subevents } else { [] } }

        /// Whether the controller may refuse it because of what else it does, so that it accepts it later.
        var canBeBlocked: Bool {
            switch self {
            case .turnOn, .setUp(_, .parameters), .setUp(_, .startPeriodic): true
            default: false
            }
        }

        var advertisement: AdvertisementIdentifier {
            switch self {
            case .turnOff(let identifier, _), .setUp(let identifier, _), .setAddress(let identifier, _),
                .turnOn(let identifier), .stopPeriodic(let identifier), .updatePeriodicData(let identifier, _),
                .remove(let identifier):
                identifier
            }
        }
    }

    /// A command before an advertisement is turned on for the first time.
    enum SetupPart: Equatable {
        case parameters
        case data([UInt8], AdvertisingDataOperation, isScanResponse: Bool)
        /// The controller reports requests for data of subevents, and responses.
        case subeventEvents
        case periodicParameters
        case periodicData([UInt8], AdvertisingDataOperation)
        /// The controller sends the train while it advertises the set.
        case startPeriodic

        /// Whether the controller may refuse it because of the train's data.
        var dependsOnPeriodicData: Bool {
            switch self {
            case .periodicData, .startPeriodic: true
            case .parameters, .data, .subeventEvents, .periodicParameters: false
            }
        }
    }
}

extension AdvertisingPlan.Entry {
    typealias Context = AdvertisingPlan.Context

    /// The commands that set the advertisement up, in their order.
    func setupParts(usesExtendedCommands: Bool) -> [AdvertisingPlan.SetupPart] {
        usesExtendedCommands ? extendedParts : legacyParts
    }

    private var legacyParts: [AdvertisingPlan.SetupPart] {
        guard configuration.peer == nil else { return [.parameters] }
        let data = configuration.advertisingData.bytes
        let response = configuration.scanResponseData.bytes
        return [.parameters, .data(data, .complete, isScanResponse: false)]
            + (legacyType == .nonConnectableUndirected ? [] : [.data(response, .complete, isScanResponse: true)])
    }

    private var extendedParts: [AdvertisingPlan.SetupPart] {
        let usesExtendedPDUs = usesExtendedPDUs
        // Directed PDUs of Bluetooth 4 have no room for data.
        guard configuration.peer == nil || usesExtendedPDUs else { return [.parameters] }
        let hasResponse =
            usesExtendedPDUs
            ? configuration.hasExtendedScanResponse
            : configuration.isConnectable || configuration.isScannable
        let data = usesExtendedPDUs ? configuration.extendedAdvertisingData : configuration.advertisingData
        let response = configuration.scanResponseData.bytes
        // A scannable set with extended PDUs takes no advertising data, not even empty data (Vol 4, Part E, 7.8.54).
        let hasData = !usesExtendedPDUs || !configuration.hasExtendedScanResponse
        return [.parameters] + (hasData ? Self.fragments(of: data.bytes, isScanResponse: false) : [])
            + (hasResponse ? Self.fragments(of: response, isScanResponse: true) : []) + periodicParts
    }

    /// The commands that set up the periodic train. It is not sent before the set is turned on.
    private var periodicParts: [AdvertisingPlan.SetupPart] {
        guard let periodic = configuration.periodic else { return [] }
        guard periodic.subevents == nil else { return [.subeventEvents, .periodicParameters, .startPeriodic] }
        let length = PeriodicAdvertisingDataFragment.maximumLength
        return [.periodicParameters]
            + Self.pieces(of: periodicData.bytes, length).map { .periodicData($0, $1) } + [.startPeriodic]
    }

    private static func fragments(of data: [UInt8], isScanResponse: Bool) -> [AdvertisingPlan.SetupPart] {
        pieces(of: data, AdvertisingDataFragment.maximumLength).map { .data($0, $1, isScanResponse: isScanResponse) }
    }

    /// Divides data into fragments that fit one command each (Vol 4, Part E, 7.8.54 and 7.8.62).
    private static func pieces(of data: [UInt8], _ length: Int) -> [([UInt8], AdvertisingDataOperation)] {
        guard data.count > length else { return [(data, .complete)] }
        return stride(from: 0, to: data.count, by: length).map { start in
            let operation: AdvertisingDataOperation =
                start == 0
                ? .firstFragment : start + length < data.count ? .intermediateFragment : .lastFragment
            return (Array(data[start...].prefix(length)), operation)
        }
    }

    private var usesExtendedPDUs: Bool { configuration.usesExtendedPDUs(maximumLegacyLength: 31) }

    private var legacyType: AdvertisingType {
        if configuration.peer != nil { return .connectableLowDutyCycleDirected }
        if configuration.isConnectable { return .connectableScannableUndirected }
        return configuration.isScannable ? .scannableUndirected : .nonConnectableUndirected
    }

    /// What the controller is to do next for the advertisement; nil if there is nothing to do, or it has to wait.
    func nextPurpose(_ context: Context) -> AdvertisingPlan.Purpose? {
        let isExtended = context.information.usesExtendedCommands
        if isEnding {
            if state == .endRefused { return nil }
            if mayBeOn { return .turnOff(identifier, .end) }
            return isPeriodicOn ? .stopPeriodic(identifier) : hasSet ? .remove(identifier) : nil
        }
        if context.addresses.hold == .everything { return mustPause ? .turnOff(identifier, .pause) : nil }
        if let data = nextPeriodicData, isPeriodicOn {
            let fits = data.length <= PeriodicAdvertisingDataFragment.maximumLength
            return fits ? .updatePeriodicData(identifier, data) : .stopPeriodic(identifier)
        }
        // Otherwise it could start with the address of the advertisement before it.
        if !isExtended, context.addresses.isChanging || lacksAddress(context.addresses) { return nil }
        // The train was stopped to change its data.
        let parts = setupParts(usesExtendedCommands: isExtended)
        if isOn, setupCount < parts.count { return .setUp(identifier, parts[setupCount]) }
        switch state {
        case .blocked, .failed, .ending, .endRefused: return nil
        case .stale: return .turnOff(identifier, .restart)
        case .on: return isExtended && hasOldAddress(context) ? .turnOff(identifier, .restart) : nil
        case .off:
            let newAddress = isExtended ? wantedAddress(context).flatMap { $0 == address ? nil : $0 } : nil
            guard setupCount < parts.count || newAddress != nil else { return .turnOn(identifier) }
            // The controller refuses to change parameters that it uses (Vol 4, Part E, 7.8.53 and 7.8.61).
            if mayBeOn, !isOffDoubtful { return .turnOff(identifier, .restart) }
            if setupCount < parts.count {
                return isPeriodicOn ? .stopPeriodic(identifier) : .setUp(identifier, parts[setupCount])
            }
            return newAddress.map { .setAddress(identifier, $0) }
        }
    }

    // MARK: Addresses

    /// The random address that its advertising set should have; nil for the public address.
    func wantedAddress(_ context: Context) -> DeviceAddress? {
        configuration.address ?? context.addresses.advertisingAddress
    }

    /// Whether its advertising set has an outdated random address. If the controller generates the private addresses,
    /// the set's own address is not used.
    func hasOldAddress(_ context: Context) -> Bool {
        guard !context.addresses.isMadeByController || configuration.address != nil else { return false }
        return wantedAddress(context).map { $0 != address } ?? false
    }

    /// Whether the controller does not have the address that it needs in legacy advertising.
    func lacksAddress(_ addresses: OwnAddresses) -> Bool {
        configuration.address.map { $0 != addresses.randomAddress } ?? false
    }

    /// The address parameters: the own address type, and the peer that the advertisement is directed to or for which
    /// the controller generates the own address (Vol 4, Part E, 7.8.5).
    private func addressing(
        _ context: Context,
        _ resolver: inout AddressResolver,
        _ random: inout some RandomNumberGenerator
    ) -> (ownType: OwnAddressType, peer: DeviceAddress) {
        let addresses = context.addresses
        let ownType = configuration.address == nil ? addresses.type : .random
        guard let peer = configuration.peer else {
            let identity = context.information.identityAddress
            return (ownType, addresses.isMadeByController ? identity : DeviceAddress(0, isRandom: false))
        }
        if addresses.list?.resolves(peer) == true {
            // The controller directs an advertisement to a private address only if it may use a private address itself.
            switch ownType {
            case .public: return (.resolvableOrPublic, peer)
            case .random where configuration.address == nil: return (.resolvableOrRandom, peer)
            case .random, .resolvableOrPublic, .resolvableOrRandom: return (ownType, peer)
            }
        }
        return (ownType, resolver.address(of: peer, random: &random) ?? peer)
    }

    // MARK: Commands

    func command(
        for purpose: AdvertisingPlan.Purpose,
        _ context: Context,
        _ resolver: inout AddressResolver,
        _ random: inout some RandomNumberGenerator
    ) -> GAPCommand {
        switch purpose {
        case .turnOff: enableCommand(false, context)
        case .turnOn: enableCommand(true, context)
        case .setUp(_, .parameters): parametersCommand(context, addressing(context, &resolver, &random))
        case .setUp(_, .data(let data, let operation, let isScanResponse)):
            dataCommand(data, operation, isScanResponse: isScanResponse, context)
        case .setUp(_, .subeventEvents):
            GAPCommand(LESetEventMask(leEventMask: context.information.leEvents.union(.subevents)))
        case .setUp(_, .periodicParameters): periodicParametersCommand
        case .setUp(_, .periodicData(let data, let operation)): periodicDataCommand(data, operation)
        case .updatePeriodicData(_, let data): periodicDataCommand(data.bytes, .complete)
        case .setUp(_, .startPeriodic): periodicEnableCommand(.enabled)
        case .stopPeriodic: periodicEnableCommand([])
        case .setAddress(_, let address):
            GAPCommand(LESetAdvertisingSetRandomAddress(advertisingHandle: handle, randomAddress: address))
        case .remove: GAPCommand(LERemoveAdvertisingSet(advertisingHandle: handle))
        }
    }

    private var periodicParametersCommand: GAPCommand {
        let interval = (configuration.periodic?.interval ?? .zero).inUnits(of: .microseconds(1250))
        let properties: PeriodicAdvertisingProperties =
            configuration.periodic?.includesTXPower == true ? .includeTXPower : []
        guard let subevents = configuration.periodic?.subevents else {
            return GAPCommand(
                LESetPeriodicAdvertisingParameters(
                    advertisingHandle: handle,
                    periodicAdvertisingIntervalMin: interval,
                    periodicAdvertisingIntervalMax: interval,
                    periodicAdvertisingProperties: properties
                )
            )
        }
        let hasSlots = subevents.responseSlotCount > 0
        return GAPCommand(
            LESetPeriodicAdvertisingParametersV2(
                advertisingHandle: handle,
                periodicAdvertisingIntervalMin: interval,
                periodicAdvertisingIntervalMax: interval,
                periodicAdvertisingProperties: properties,
                numSubevents: UInt8(clamping: subevents.count),
                subeventInterval: subevents.interval.inByteUnits(of: .microseconds(1250)),
                responseSlotDelay: hasSlots ? subevents.responseSlotDelay.inByteUnits(of: .microseconds(1250)) : 0,
                responseSlotSpacing: hasSlots ? subevents.responseSlotSpacing.inByteUnits(of: .microseconds(125)) : 0,
                numResponseSlots: UInt8(clamping: subevents.responseSlotCount)
            )
        )
    }

    private func periodicDataCommand(_ data: [UInt8], _ operation: AdvertisingDataOperation) -> GAPCommand {
        GAPCommand(
            LESetPeriodicAdvertisingData(
                advertisingHandle: handle,
                operation: operation,
                advertisingData: PeriodicAdvertisingDataFragment(data)
            )
        )
    }

    private func periodicEnableCommand(_ enable: PeriodicAdvertisingEnable) -> GAPCommand {
        GAPCommand(LESetPeriodicAdvertisingEnable(enable: enable, advertisingHandle: handle))
    }

    private func enableCommand(_ isEnabled: Bool, _ context: Context) -> GAPCommand {
        context.information.usesExtendedCommands
            ? GAPCommand(LESetExtendedAdvertisingEnable(enable: isEnabled, sets: [.init(advertisingHandle: handle)]))
            : GAPCommand(LESetAdvertisingEnable(advertisingEnable: isEnabled))
    }

    private func parametersCommand(
        _ context: Context,
        _ addressing: (ownType: OwnAddressType, peer: DeviceAddress)
    ) -> GAPCommand {
        let interval = configuration.interval.inUnits(of: .microseconds(625))
        guard context.information.usesExtendedCommands else {
            return GAPCommand(
                LESetAdvertisingParameters(
                    advertisingIntervalMin: interval,
                    advertisingIntervalMax: interval,
                    advertisingType: legacyType,
                    ownAddressType: addressing.ownType,
                    peerAddress: addressing.peer
                )
            )
        }
        let phys = configuration.phys
        guard phys.choosesCoding else {
            return GAPCommand(
                LESetExtendedAdvertisingParameters(
                    advertisingHandle: handle,
                    advertisingEventProperties: configuration.eventProperties(usesExtendedPDUs: usesExtendedPDUs),
                    primaryAdvertisingIntervalMin: UInt32(interval),
                    primaryAdvertisingIntervalMax: UInt32(interval),
                    ownAddressType: addressing.ownType,
                    peerAddress: addressing.peer,
                    primaryAdvertisingPHY: phys.primary,
                    secondaryAdvertisingPHY: phys.secondary,
                    advertisingSID: handle & 0x0F
                )
            )
        }
        return GAPCommand(
            LESetExtendedAdvertisingParametersV2(
                advertisingHandle: handle,
                advertisingEventProperties: configuration.eventProperties(usesExtendedPDUs: usesExtendedPDUs),
                primaryAdvertisingIntervalMin: UInt32(interval),
                primaryAdvertisingIntervalMax: UInt32(interval),
                ownAddressType: addressing.ownType,
                peerAddress: addressing.peer,
                primaryAdvertisingPHY: phys.primary,
                secondaryAdvertisingPHY: phys.secondary,
                advertisingSID: handle & 0x0F,
                primaryAdvertisingPHYOptions: phys.primaryCoding,
                secondaryAdvertisingPHYOptions: phys.secondaryCoding
            )
        )
    }

    private func dataCommand(
        _ data: [UInt8],
        _ operation: AdvertisingDataOperation,
        isScanResponse: Bool,
        _ context: Context
    ) -> GAPCommand {
        switch (context.information.usesExtendedCommands, isScanResponse) {
        case (false, false): GAPCommand(LESetAdvertisingData(advertisingData: LegacyAdvertisingData(data)))
        case (false, true): GAPCommand(LESetScanResponseData(scanResponseData: LegacyAdvertisingData(data)))
        case (true, false):
            GAPCommand(
                LESetExtendedAdvertisingData(
                    advertisingHandle: handle,
                    operation: operation,
                    advertisingData: AdvertisingDataFragment(data)
                )
            )
        case (true, true):
            GAPCommand(
                LESetExtendedScanResponseData(
                    advertisingHandle: handle,
                    operation: operation,
                    scanResponseData: AdvertisingDataFragment(data)
                )
            )
        }
    }
}

extension LEEventMask {
    /// The events of a train with subevents.
    fileprivate static let subevents: LEEventMask = [
        .periodicAdvertisingSubeventDataRequest, .periodicAdvertisingResponseReport,
    ]
}

extension Duration {
    /// The duration in a field of one byte, rounded down.
    fileprivate func inByteUnits(of unit: Duration) -> UInt8 { UInt8(clamping: inUnits(of: unit)) }
}

extension CommandFailure {
    /// Whether a controller may refuse to advertise with this error because of its connections.
    var mayBeCausedByConnections: Bool {
        guard case .status(let code, _) = self else { return false }
        return [.connectionLimitExceeded, .commandDisallowed, .memoryCapacityExceeded].contains(code)
    }
}
