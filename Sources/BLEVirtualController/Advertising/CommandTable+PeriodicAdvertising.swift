import BLEHCI

extension CommandTable {
    /// Adds periodic advertising and synchronizing (Vol 4, Part E, 7.8.61 to 7.8.63, 7.8.67 to 7.8.69 and 7.8.88).
    mutating func addPeriodicAdvertising() {
        carryOut(LESetPeriodicAdvertisingParameters.self, of: .extended, needs: .periodicAdvertising) {
            $0.setPeriodicAdvertisingParameters($1)
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

extension PeriodicTrain {
    /// Whether the air time of the data exceeds the time between two events.
    fileprivate func isTooLong(_ payload: AdvertisingPayload, _ parameters: AdvertisingSet.Parameters) -> Bool {
        .microseconds(payload.airTime(phy: parameters.secondaryPHY)) > intervalDuration
    }
}

extension VirtualController {
    fileprivate func setPeriodicAdvertisingParameters(_ command: LESetPeriodicAdvertisingParameters) -> HCIErrorCode {
        withSet(command.advertisingHandle) { set in
            let interval = command.periodicAdvertisingIntervalMin
            guard interval >= 0x0006, interval <= command.periodicAdvertisingIntervalMax,
                PeriodicAdvertisingProperties.includeTXPower.isSuperset(of: command.periodicAdvertisingProperties),
                set.parameters.supportsPeriodicAdvertising
            else { return .invalidHCICommandParameters }
            guard let train = set.train else {
                set.train = PeriodicTrain(
                    handle: set.handle,
                    interval: interval,
                    properties: command.periodicAdvertisingProperties
                )
                return .success
            }
            guard !train.isEnabled else { return .commandDisallowed }
            let time = Duration.microseconds(train.payload.airTime(phy: set.parameters.secondaryPHY))
            guard train.payload.bytes.isEmpty || time <= .microseconds(1250 * Int(interval)) else {
                return .packetTooLong
            }
            train.interval = interval
            train.properties = command.periodicAdvertisingProperties
            return .success
        }
    }

    fileprivate func setPeriodicAdvertisingData(_ command: LESetPeriodicAdvertisingData) -> HCIErrorCode {
        let (bytes, operation) = (command.advertisingData.bytes, command.operation)
        let limit = Int(configuration.maximumAdvertisingDataLength)
        return withSet(command.advertisingHandle) { set in
            guard let train = set.train else { return .commandDisallowed }
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
            guard bytes.isEmpty || !train.isTooLong(payload, set.parameters) else { return .packetTooLong }
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
                set.train?.stop()
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
