import BLEHCI

extension CommandTable {
    /// Adds periodic advertising and synchronizing (Vol 4, Part E, 7.8.61 to 7.8.63, 7.8.67 to 7.8.69 and 7.8.88).
    mutating func addPeriodicAdvertising() {
        carryOut(LESetPeriodicAdvertisingParameters.self, of: .extended, needs: .periodicAdvertising) {
            $0.setPeriodicAdvertisingParameters(PeriodicParameters($1))
        }
        carryOut(LESetPeriodicAdvertisingData.self, of: .extended, needs: .periodicAdvertising) {
            $0.setPeriodicAdvertisingData($1)
        }
        carryOut(LESetPeriodicAdvertisingEnable.self, of: .extended, needs: .periodicAdvertising) {
            $0.setPeriodicAdvertisingEnable($1)
        }
        begin(LEPeriodicAdvertisingCreateSync.self, of: .extended, needs: .periodicAdvertising) {
            $0.createSync($1)
        }
        carryOut(LEPeriodicAdvertisingCreateSyncCancel.self, of: .extended, needs: .periodicAdvertising) {
            controller,
            _ in
            controller.cancelSync()
        }
        carryOut(LEPeriodicAdvertisingTerminateSync.self, of: .extended, needs: .periodicAdvertising) {
            $0.terminateSync($1)
        }
        carryOut(LESetPeriodicAdvertisingReceiveEnable.self, needs: .periodicAdvertising) { $0.setReceiving($1) }
    }
}

/// The parameters of a periodic train, of either version of the command.
struct PeriodicParameters {
    let handle: UInt8
    private let minimum: UInt16
    private let maximum: UInt16
    let properties: PeriodicAdvertisingProperties
    var subevents: SubeventTiming?

    init(_ command: LESetPeriodicAdvertisingParameters) {
        handle = command.advertisingHandle
        minimum = command.periodicAdvertisingIntervalMin
        maximum = command.periodicAdvertisingIntervalMax
        properties = command.periodicAdvertisingProperties
    }

    init(_ command: LESetPeriodicAdvertisingParametersV2) {
        handle = command.advertisingHandle
        minimum = command.periodicAdvertisingIntervalMin
        maximum = command.periodicAdvertisingIntervalMax
        properties = command.periodicAdvertisingProperties
        subevents = SubeventTiming(command)
    }

    /// The interval that the controller chooses, in units of 1.25 ms; nil if none fits.
    var interval: UInt16? {
        guard minimum >= 0x0006, minimum <= maximum else { return nil }
        guard let subevents else { return minimum }
        guard subevents.isValid, subevents.eventLength <= Int(maximum) else { return nil }
        return max(minimum, UInt16(subevents.eventLength))
    }
}

extension PeriodicTrain {
    /// Whether the air time of the data exceeds the time between two events.
    fileprivate func isTooLong(_ payload: AdvertisingPayload, _ parameters: AdvertisingSet.Parameters) -> Bool {
        .microseconds(payload.airTime(phy: parameters.secondaryPHY)) > intervalDuration
    }
}

extension VirtualController {
    func setPeriodicAdvertisingParameters(_ command: PeriodicParameters) -> HCIErrorCode {
        withSet(command.handle) { set in
            guard let interval = command.interval,
                PeriodicAdvertisingProperties.includeTXPower.isSuperset(of: command.properties),
                set.parameters.supportsPeriodicAdvertising
            else { return .invalidHCICommandParameters }
            guard let train = set.train else {
                let train = PeriodicTrain(handle: set.handle, interval: interval, properties: command.properties)
                train.subevents = command.subevents
                set.train = train
                return .success
            }
            guard !train.isEnabled else { return .commandDisallowed }
            let time = Duration.microseconds(train.payload.airTime(phy: set.parameters.secondaryPHY))
            guard train.payload.bytes.isEmpty || time <= .microseconds(1250 * Int(interval)) else {
                return .packetTooLong
            }
            train.interval = interval
            train.properties = command.properties
            train.subevents = command.subevents
            return .success
        }
    }

    fileprivate func setPeriodicAdvertisingData(_ command: LESetPeriodicAdvertisingData) -> HCIErrorCode {
        let (bytes, operation) = (command.advertisingData.bytes, command.operation)
        let limit = Int(configuration.maximumAdvertisingDataLength)
        return withSet(command.advertisingHandle) { set in
            // A train with subevents has data of its subevents only.
            guard let train = set.train, train.subevents == nil else { return .commandDisallowed }
            switch operation {
            case .complete: break
            case .unchanged:
                guard train.isEnabled, bytes.isEmpty, !train.payload.bytes.isEmpty else {
                    return .invalidHCICommandParameters
                }
            case .firstFragment, .intermediateFragment, .lastFragment:
                guard !bytes.isEmpty else { return .invalidHCICommandParameters }
                guard !train.isEnabled else { return .commandDisallowed }
            }
            var payload = train.payload
            let status = payload.take(bytes, operation, limit: limit)
            guard bytes.isEmpty || !train.isTooLong(payload, set.parameters) else {
                // All data is discarded (7.8.62).
                train.payload = AdvertisingPayload()
                return .packetTooLong
            }
            train.payload = payload
            return status
        }
    }

    fileprivate func setPeriodicAdvertisingEnable(_ command: LESetPeriodicAdvertisingEnable) -> HCIErrorCode {
        let status = withSet(command.advertisingHandle) { set in
            guard PeriodicAdvertisingEnable([.enabled, .includeADI]).isSuperset(of: command.enable) else {
                return .invalidHCICommandParameters
            }
            guard command.enable.contains(.enabled) else {
                if let train = set.train { stop(train) }
                return .success
            }
            guard !command.enable.contains(.includeADI) else { return .unsupportedFeatureOrParameterValue }
            guard let train = set.train, train.payload.isComplete else { return .commandDisallowed }
            guard set.parameters.supportsPeriodicAdvertising else { return .invalidHCICommandParameters }
            guard train.payload.bytes.isEmpty || !train.isTooLong(train.payload, set.parameters) else {
                return .packetTooLong
            }
            train.isEnabled = true
            return .success
        }
        if let index = advertiser.index(of: command.advertisingHandle), let train = advertiser.sets[index].train {
            startIfReady(train)
        }
        return status
    }
}
