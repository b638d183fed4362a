import BLEHCI
import BluetoothTypes

extension CommandTable {
    /// Adds the random address and legacy advertising (Vol 4, Part E, 7.8.4 to 7.8.9).
    mutating func addAdvertising() {
        carryOut(LESetRandomAddress.self) { controller, command in
            let isAdvertising = controller.advertiser.commands == .legacy && controller.advertiser.isAdvertising
            guard !isAdvertising, !controller.scanner.isEnabled, controller.initiator == nil else {
                return .commandDisallowed
            }
            controller.randomAddress = command.randomAddress
            return .success
        }
        carryOut(LESetAdvertisingParameters.self, of: .legacy) { $0.setAdvertisingParameters($1) }
        answer(LEReadAdvertisingPhysicalChannelTxPower.self, of: .legacy) { controller, _ in
            .success(.init(txPowerLevel: controller.configuration.transmitPower))
        }
        carryOut(LESetAdvertisingData.self, of: .legacy) { controller, command in
            controller.withLegacySet { $0.data.take(command.advertisingData.bytes, .complete, limit: 31) }
        }
        carryOut(LESetScanResponseData.self, of: .legacy) { controller, command in
            controller.withLegacySet { $0.scanResponse.take(command.scanResponseData.bytes, .complete, limit: 31) }
        }
        carryOut(LESetAdvertisingEnable.self, of: .legacy) { $0.setAdvertisingEnable($1) }
    }
}

extension VirtualController {
    /// Changes the set of the legacy commands. If there is none, creates it with the default parameters first.
    fileprivate func withLegacySet<Outcome>(_ change: (inout AdvertisingSet) -> Outcome) -> Outcome {
        if advertiser.sets.isEmpty {
            advertiser.sets.append(
                AdvertisingSet(
                    handle: 0,
                    parameters: AdvertisingSet.Parameters(
                        LESetAdvertisingParameters(),
                        transmitPower: configuration.transmitPower
                    )
                )
            )
        }
        return change(&advertiser.sets[0])
    }

    fileprivate func setAdvertisingParameters(_ command: LESetAdvertisingParameters) -> HCIErrorCode {
        guard !advertiser.isAdvertising else { return .commandDisallowed }
        guard command.advertisingChannelMap.isValid else { return .invalidHCICommandParameters }
        if command.advertisingType != .connectableHighDutyCycleDirected {
            let (minimum, maximum) = (command.advertisingIntervalMin, command.advertisingIntervalMax)
            guard minimum <= maximum, minimum >= 0x0020, maximum <= 0x4000 else { return .invalidHCICommandParameters }
        }
        let power = configuration.transmitPower
        return withLegacySet {
            $0.parameters = AdvertisingSet.Parameters(command, transmitPower: power)
            return .success
        }
    }

    fileprivate func setAdvertisingEnable(_ command: LESetAdvertisingEnable) -> HCIErrorCode {
        guard command.advertisingEnable else {
            stopAdvertising()
            return .success
        }
        let set = withLegacySet { $0 }
        guard ownAddress(of: set) != nil else { return .invalidHCICommandParameters }
        // High duty cycle directed advertising ends after 1.28 s (Vol 6, Part B, 4.4.2.4.3).
        startAdvertising(0, duration: set.parameters.isHighDutyCycle ? .milliseconds(1280) : .zero)
        return .success
    }
}

extension AdvertisingChannelMap {
    /// Whether it has channels, but no reserved bits.
    var isValid: Bool { !isEmpty && AdvertisingChannelMap.all.isSuperset(of: self) }
}

extension AdvertisingSet.Parameters {
    fileprivate init(_ command: LESetAdvertisingParameters, transmitPower: Int8) {
        self.init(
            properties: AdvertisingEventProperties(command.advertisingType),
            interval: UInt32(command.advertisingIntervalMin),
            ownAddressType: command.ownAddressType,
            peerAddress: command.peerAddress,
            filterPolicy: command.advertisingFilterPolicy,
            transmitPower: transmitPower,
            primaryPHY: .le1M,
            secondaryPHY: .le1M,
            sid: 0xFF,
            notifiesOfScanRequests: false
        )
    }
}

extension AdvertisingEventProperties {
    static let connectableScannableUndirectedLegacy: Self = [.connectable, .scannable, .useLegacyPDUs]
    static let connectableDirectedLegacy: Self = [.connectable, .directed, .useLegacyPDUs]
    static let connectableHighDutyCycleDirectedLegacy: Self = [
        .connectable, .directed, .highDutyCycleDirectedConnectable, .useLegacyPDUs,
    ]
    static let scannableUndirectedLegacy: Self = [.scannable, .useLegacyPDUs]
    static let nonConnectableUndirectedLegacy: Self = .useLegacyPDUs

    /// The properties that correspond to a legacy advertising type (Vol 4, Part E, 7.8.53, table 7.2).
    fileprivate init(_ type: AdvertisingType) {
        switch type {
        case .connectableScannableUndirected: self = .connectableScannableUndirectedLegacy
        case .connectableHighDutyCycleDirected: self = .connectableHighDutyCycleDirectedLegacy
        case .scannableUndirected: self = .scannableUndirectedLegacy
        case .nonConnectableUndirected: self = .nonConnectableUndirectedLegacy
        case .connectableLowDutyCycleDirected: self = .connectableDirectedLegacy
        }
    }
}
