import BLEHCI
import BluetoothTypes

extension CommandTable {
    /// Adds the commands for subrated connections, transmit powers and path loss (Vol 4, Part E, 7.8.117 to 7.8.124).
    mutating func addLinkPower() {
        addSubrating()
        addTransmitPower()
        addPathLoss()
    }

    private mutating func addSubrating() {
        carryOut(LESetDefaultSubrate.self, needs: .connectionSubrating) { controller, command in
            let range = SubrateRange(
                minimum: command.subrateMin,
                maximum: command.subrateMax,
                latency: command.maxLatency,
                continuationNumber: command.continuationNumber,
                supervisionTimeout: command.supervisionTimeout
            )
            guard range.isValid else { return .invalidHCICommandParameters }
            controller.linkDefaults.subrate = range
            return .success
        }
        begin(LESubrateRequest.self, needs: .connectionSubrating) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .refused(.unknownConnectionIdentifier)
            }
            let wanted = SubrateRange(
                minimum: command.subrateMin,
                maximum: command.subrateMax,
                latency: command.maxLatency,
                continuationNumber: command.continuationNumber,
                supervisionTimeout: command.supervisionTimeout
            )
            if let error = end.obstacle(to: wanted) { return .refused(error) }
            return end.answer(beginning: .subrate(wanted))
        }
    }

    private mutating func addTransmitPower() {
        answer(LEEnhancedReadTransmitPowerLevel.self, needs: .powerControlRequest) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            guard controller.configuration.hasPower(on: command.phy) else {
                return .failure(.unsupportedFeatureOrParameterValue)
            }
            return .success(
                .init(
                    connectionHandle: command.connectionHandle,
                    phy: command.phy,
                    currentTXPowerLevel: end.power.power,
                    maxTXPowerLevel: controller.configuration.transmitPower
                )
            )
        }
        begin(LEReadRemoteTransmitPowerLevel.self, needs: .powerControlRequest) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .refused(.unknownConnectionIdentifier)
            }
            guard controller.configuration.hasPower(on: command.phy) else {
                return .refused(.unsupportedFeatureOrParameterValue)
            }
            return end.answer(beginning: .power(command.phy, delta: 0, isWantedByHost: true))
        }
        answer(LESetTransmitPowerReportingEnable.self, needs: .powerControlRequest) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            end.reportPower(local: command.localEnable, remote: command.remoteEnable)
            return .success(.init(connectionHandle: command.connectionHandle))
        }
    }

    private mutating func addPathLoss() {
        let needed: LEFeatures = [.powerControlRequest, .pathLossMonitoring]
        answer(LESetPathLossReportingParameters.self, needs: needed) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            guard command.areValid else { return .failure(.invalidHCICommandParameters) }
            end.power.pathLoss.parameters = command
            if end.power.pathLoss.isEnabled { end.reportPathLoss(true) }
            return .success(.init(connectionHandle: command.connectionHandle))
        }
        answer(LESetPathLossReportingEnable.self, needs: needed) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            guard end.power.pathLoss.parameters != nil else { return .failure(.commandDisallowed) }
            end.reportPathLoss(command.enable)
            return .success(.init(connectionHandle: command.connectionHandle))
        }
    }
}

extension VirtualController.Configuration {
    /// Whether the controller can use a PHY of the power control commands.
    fileprivate func hasPower(on phy: PHY) -> Bool {
        switch phy {
        case .le1M: true
        case .le2M: features.contains(.le2MPHY)
        case .leCoded, .leCodedS2: features.contains(.leCodedPHY)
        default: false
        }
    }
}
