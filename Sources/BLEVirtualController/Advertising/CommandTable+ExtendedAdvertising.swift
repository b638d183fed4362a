import BLEHCI
import BluetoothTypes

extension CommandTable {
    /// Adds extended advertising (Vol 4, Part E, 7.8.52 to 7.8.60).
    mutating func addExtendedAdvertising() {
        carryOut(LESetAdvertisingSetRandomAddress.self, of: .extended) { controller, command in
            controller.withSet(command.advertisingHandle) { set in
                guard !set.isEnabled || !set.parameters.properties.contains(.connectable) else {
                    return .commandDisallowed
                }
                set.randomAddress = command.randomAddress
                return .success
            }
        }
        answer(LESetExtendedAdvertisingParameters.self, of: .extended) { controller, command in
            controller.setExtendedAdvertisingParameters(command).map { .init(selectedTXPower: $0) }
        }
        answer(
            LESetExtendedAdvertisingParametersV2.self,
            of: .extended,
            needs: .advertisingCodingSelection
        ) { controller, command in
            controller.setExtendedAdvertisingParameters(command).map { .init(selectedTXPower: $0) }
        }
        carryOut(LESetExtendedAdvertisingData.self, of: .extended) { $0.setExtendedAdvertisingData($1) }
        carryOut(LESetExtendedScanResponseData.self, of: .extended) { $0.setExtendedScanResponseData($1) }
        carryOut(LESetExtendedAdvertisingEnable.self, of: .extended) { $0.setExtendedAdvertisingEnable($1) }
        answer(LEReadMaximumAdvertisingDataLength.self, of: .extended) { controller, _ in
            .success(.init(maxAdvertisingDataLength: controller.configuration.maximumAdvertisingDataLength))
        }
        answer(LEReadNumberOfSupportedAdvertisingSets.self, of: .extended) { controller, _ in
            .success(.init(numSupportedAdvertisingSets: controller.configuration.advertisingSetCount))
        }
        carryOut(LERemoveAdvertisingSet.self, of: .extended) { controller, command in
            guard let index = controller.advertiser.index(of: command.advertisingHandle) else {
                return command.advertisingHandle <= 0xEF ? .unknownAdvertisingIdentifier : .invalidHCICommandParameters
            }
            guard !controller.advertiser.sets[index].isInUse else { return .commandDisallowed }
            controller.advertiser.sets.remove(at: index)
            return .success
        }
        carryOut(LEClearAdvertisingSets.self, of: .extended) { controller, _ in
            guard !controller.advertiser.sets.contains(where: \.isInUse) else { return .commandDisallowed }
            controller.advertiser.sets = []
            return .success
        }
    }
}

extension AdvertisingSet {
    /// Whether the set or its periodic train is being advertised.
    fileprivate var isInUse: Bool { isEnabled || train?.isEnabled == true }
}

extension VirtualController {
    /// Changes the set with a handle. Returns an error if there is none.
    func withSet(_ handle: UInt8, _ change: (inout AdvertisingSet) -> HCIErrorCode) -> HCIErrorCode {
        guard handle <= 0xEF else { return .invalidHCICommandParameters }
        guard let index = advertiser.index(of: handle) else { return .unknownAdvertisingIdentifier }
        return change(&advertiser.sets[index])
    }

    // MARK: Parameters

    fileprivate func setExtendedAdvertisingParameters(
        _ command: LESetExtendedAdvertisingParametersV2
    ) -> Result<Int8, HCIErrorCode> {
        let options = [command.primaryAdvertisingPHYOptions, command.secondaryAdvertisingPHYOptions]
        guard options.allSatisfy({ $0.rawValue <= 4 }) else { return .failure(.invalidHCICommandParameters) }
        return setExtendedAdvertisingParameters(
            LESetExtendedAdvertisingParameters(
                advertisingHandle: command.advertisingHandle,
                advertisingEventProperties: command.advertisingEventProperties,
                primaryAdvertisingIntervalMin: command.primaryAdvertisingIntervalMin,
                primaryAdvertisingIntervalMax: command.primaryAdvertisingIntervalMax,
                primaryAdvertisingChannelMap: command.primaryAdvertisingChannelMap,
                ownAddressType: command.ownAddressType,
                peerAddress: command.peerAddress,
                advertisingFilterPolicy: command.advertisingFilterPolicy,
                advertisingTXPower: command.advertisingTXPower,
                primaryAdvertisingPHY: command.primaryAdvertisingPHY,
                secondaryAdvertisingMaxSkip: command.secondaryAdvertisingMaxSkip,
                secondaryAdvertisingPHY: command.secondaryAdvertisingPHY,
                advertisingSID: command.advertisingSID,
                scanRequestNotificationEnable: command.scanRequestNotificationEnable
            ),
            usesS2: (
                options[0].isS2 && command.primaryAdvertisingPHY == .leCoded,
                options[1].isS2 && command.secondaryAdvertisingPHY == .leCoded
            )
        )
    }

    fileprivate func setExtendedAdvertisingParameters(
        _ command: LESetExtendedAdvertisingParameters,
        usesS2: (primary: Bool, secondary: Bool) = (false, false)
    ) -> Result<Int8, HCIErrorCode> {
        if let error = error(in: command) { return .failure(error) }
        let requested = command.advertisingTXPower
        let power = requested == 0x7F ? configuration.transmitPower : min(requested, configuration.transmitPower)
        var parameters = AdvertisingSet.Parameters(command, transmitPower: power)
        if !parameters.usesLegacyPDUs { parameters.usesS2 = usesS2 }
        let index = advertiser.index(of: command.advertisingHandle)
        if let index {
            let set = advertiser.sets[index]
            guard !set.isEnabled else { return .failure(.commandDisallowed) }
            guard parameters.hasRoom(for: set) else { return .failure(.invalidHCICommandParameters) }
            if let train = set.train, train.isEnabled {
                guard parameters.supportsPeriodicAdvertising else { return .failure(.invalidHCICommandParameters) }
                guard parameters.secondaryPHY == set.parameters.secondaryPHY else {
                    return .failure(.commandDisallowed)
                }
            }
            var changed = set
            changed.parameters = parameters
            guard !changed.isTooLong else { return .failure(.packetTooLong) }
            advertiser.sets[index] = changed
        } else {
            guard advertiser.sets.count < Int(configuration.advertisingSetCount) else {
                return .failure(.memoryCapacityExceeded)
            }
            var set = AdvertisingSet(handle: command.advertisingHandle, parameters: parameters)
            set.dataIdentifier = advertiser.nextDataIdentifier()
            advertiser.sets.append(set)
        }
        return .success(power)
    }

    /// Returns the error in the parameters themselves, if any (Vol 4, Part E, 7.8.53).
    private func error(in command: LESetExtendedAdvertisingParameters) -> HCIErrorCode? {
        let properties = command.advertisingEventProperties
        let isLegacy = properties.contains(.useLegacyPDUs)
        guard command.advertisingHandle <= 0xEF, isLegacy ? properties.isLegacyKind : properties.isExtendedKind,
            command.primaryAdvertisingChannelMap.isValid,
            (-127...20).contains(command.advertisingTXPower) || command.advertisingTXPower == 0x7F
        else { return .invalidHCICommandParameters }
        if !properties.contains(.highDutyCycleDirectedConnectable) {
            guard command.primaryAdvertisingIntervalMin >= 0x20,
                command.primaryAdvertisingIntervalMin <= command.primaryAdvertisingIntervalMax
            else { return .invalidHCICommandParameters }
        }
        let phys: [PHY] = isLegacy ? [.le1M] : [.le1M, .leCoded]
        guard phys.contains(command.primaryAdvertisingPHY) else { return .invalidHCICommandParameters }
        if !isLegacy {
            guard command.advertisingSID <= 0x0F, (0x01...0x03).contains(command.secondaryAdvertisingPHY.rawValue)
            else {
                return .invalidHCICommandParameters
            }
            guard understands(command.primaryAdvertisingPHY), understands(command.secondaryAdvertisingPHY) else {
                return .unsupportedFeatureOrParameterValue
            }
        }
        return nil
    }

    // MARK: Data

    fileprivate func setExtendedAdvertisingData(_ command: LESetExtendedAdvertisingData) -> HCIErrorCode {
        let (bytes, operation) = (command.advertisingData.bytes, command.operation)
        let limit = Int(configuration.maximumAdvertisingDataLength)
        let identifier = advertiser.nextDataIdentifier()
        return withSet(command.advertisingHandle) { set in
            let isLegacy = set.parameters.usesLegacyPDUs
            guard set.parameters.supportsData else { return .invalidHCICommandParameters }
            if isLegacy {
                guard operation == .complete, bytes.count <= LegacyAdvertisingData.maximumLength else {
                    return .invalidHCICommandParameters
                }
            }
            switch operation {
            case .complete: break
            case .unchanged:
                guard set.isEnabled, bytes.isEmpty, !set.data.bytes.isEmpty else { return .invalidHCICommandParameters }
            case .firstFragment, .intermediateFragment, .lastFragment:
                guard !bytes.isEmpty else { return .invalidHCICommandParameters }
                guard !set.isEnabled else { return .commandDisallowed }
            }
            var changed = set
            var status = changed.data.take(bytes, operation, limit: limit)
            if changed.isTooLong {
                // All data is discarded (7.8.54).
                changed.data = AdvertisingPayload()
                status = .packetTooLong
            }
            guard !set.isEnabled || !changed.needsChainToConnect else { return .invalidHCICommandParameters }
            guard status != .commandDisallowed else { return status }
            changed.dataIdentifier = identifier
            set = changed
            return status
        }
    }

    fileprivate func setExtendedScanResponseData(_ command: LESetExtendedScanResponseData) -> HCIErrorCode {
        let (bytes, operation) = (command.scanResponseData.bytes, command.operation)
        let limit = Int(configuration.maximumAdvertisingDataLength)
        let identifier = advertiser.nextDataIdentifier()
        return withSet(command.advertisingHandle) { set in
            let isLegacy = set.parameters.usesLegacyPDUs
            // Data can be removed from a set that is not scannable, but not added.
            let isDiscarding = operation == .complete && bytes.isEmpty
            guard operation != .unchanged, set.parameters.properties.contains(.scannable) || isDiscarding else {
                return .invalidHCICommandParameters
            }
            if isLegacy {
                guard operation == .complete, bytes.count <= LegacyAdvertisingData.maximumLength else {
                    return .invalidHCICommandParameters
                }
            }
            if operation != .complete {
                guard !bytes.isEmpty else { return .invalidHCICommandParameters }
                guard !set.isEnabled else { return .commandDisallowed }
            }
            if isDiscarding, !isLegacy, set.isEnabled, set.parameters.properties.contains(.scannable) {
                return .commandDisallowed
            }
            var changed = set
            var status = changed.scanResponse.take(bytes, operation, limit: limit)
            if changed.isTooLong {
                // All data is discarded (7.8.55).
                changed.scanResponse = AdvertisingPayload()
                status = .packetTooLong
            }
            guard status != .commandDisallowed else { return status }
            changed.dataIdentifier = identifier
            set = changed
            return status
        }
    }

    // MARK: Enabling

    fileprivate func setExtendedAdvertisingEnable(_ command: LESetExtendedAdvertisingEnable) -> HCIErrorCode {
        if command.sets.isEmpty {
            guard !command.enable else { return .invalidHCICommandParameters }
            for index in advertiser.sets.indices { stopAdvertising(index) }
            return .success
        }
        // All sets are validated before any is started or stopped.
        var indices: [Int] = []
        for requested in command.sets {
            guard requested.advertisingHandle <= 0xEF else { return .invalidHCICommandParameters }
            guard let index = advertiser.index(of: requested.advertisingHandle) else {
                return .unknownAdvertisingIdentifier
            }
            guard !indices.contains(index) else { return .invalidHCICommandParameters }
            if command.enable, let error = error(in: requested, advertiser.sets[index]) { return error }
            indices.append(index)
        }
        for (requested, index) in zip(command.sets, indices) {
            guard command.enable else {
                stopAdvertising(index)
                continue
            }
            startAdvertising(
                index,
                duration: .milliseconds(10 * Int(requested.duration)),
                maximumEvents: requested.maxExtendedAdvertisingEvents
            )
        }
        return .success
    }

    /// Returns the error if a set cannot be advertised (Vol 4, Part E, 7.8.56).
    private func error(
        in requested: LESetExtendedAdvertisingEnable.AdvertisingSet,
        _ set: AdvertisingSet
    ) -> HCIErrorCode? {
        if set.parameters.isHighDutyCycle, !(1...128).contains(requested.duration) {
            return .invalidHCICommandParameters
        }
        guard set.data.isComplete, set.scanResponse.isComplete else { return .commandDisallowed }
        let isScannable = set.parameters.properties.contains(.scannable)
        if isScannable, !set.parameters.usesLegacyPDUs, set.scanResponse.bytes.isEmpty { return .commandDisallowed }
        guard ownAddress(of: set) != nil, !set.needsChainToConnect else { return .invalidHCICommandParameters }
        return set.isTooLong ? .packetTooLong : nil
    }
}

extension AdvertisingPHYOptions {
    fileprivate var isS2: Bool { self == .preferS2Coding || self == .requireS2Coding }
}

extension AdvertisingSet.Parameters {
    fileprivate init(_ command: LESetExtendedAdvertisingParameters, transmitPower: Int8) {
        let isLegacy = command.advertisingEventProperties.contains(.useLegacyPDUs)
        self.init(
            properties: command.advertisingEventProperties,
            interval: command.primaryAdvertisingIntervalMin,
            ownAddressType: command.ownAddressType,
            peerAddress: command.peerAddress,
            filterPolicy: command.advertisingFilterPolicy,
            transmitPower: transmitPower,
            primaryPHY: command.primaryAdvertisingPHY,
            secondaryPHY: isLegacy ? .le1M : command.secondaryAdvertisingPHY,
            sid: isLegacy ? 0xFF : command.advertisingSID,
            notifiesOfScanRequests: command.scanRequestNotificationEnable
        )
    }
}

extension AdvertisingSet.Parameters {
    /// Whether the existing data of a set fits the PDUs.
    fileprivate func hasRoom(for set: AdvertisingSet) -> Bool {
        guard supportsData || set.data.bytes.isEmpty else { return false }
        let longest = max(set.data.bytes.count, set.scanResponse.bytes.count)
        return !usesLegacyPDUs || longest <= LegacyAdvertisingData.maximumLength
    }
}

extension AdvertisingEventProperties {
    /// Whether a legacy PDU type has these properties (Vol 4, Part E, 7.8.53, table 7.2).
    fileprivate var isLegacyKind: Bool {
        [
            Self.connectableScannableUndirectedLegacy, .connectableDirectedLegacy,
            .connectableHighDutyCycleDirectedLegacy, .scannableUndirectedLegacy, .nonConnectableUndirectedLegacy,
        ].contains(self)
    }

    /// Whether extended PDUs allow these properties. They may not be both connectable and scannable, nor high duty
    /// cycle. If they accept requests, they must include the address.
    fileprivate var isExtendedKind: Bool {
        let known: Self = [.connectable, .scannable, .directed, .omitAdvertiserAddress, .includeTXPower]
        let requests = intersection([.connectable, .scannable])
        return known.isSuperset(of: self) && requests != [.connectable, .scannable]
            && (requests.isEmpty || !contains(.omitAdvertiserAddress))
    }
}
