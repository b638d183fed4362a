import BLEHCI

extension CommandTable {
    /// Adds legacy and extended scanning (Vol 4, Part E, 7.8.10, 7.8.11, 7.8.64 and 7.8.65).
    mutating func addScanning() {
        carryOut(LESetScanParameters.self, of: .legacy) { controller, command in
            let phy = Scanner.PHYParameters(
                scanType: command.leScanType,
                scanInterval: command.leScanInterval,
                scanWindow: command.leScanWindow
            )
            guard phy.listening.isValid(upTo: 0x4000) else { return .invalidHCICommandParameters }
            return controller.setScan(command.ownAddressType, command.scanningFilterPolicy, le1M: phy, leCoded: nil)
        }
        carryOut(LESetScanEnable.self, of: .legacy) { controller, command in
            guard command.leScanEnable else { return controller.disableScan() }
            return controller.enableScan(command.filterDuplicates ? .enabled : .disabled, isExtended: false)
        }
        carryOut(LESetExtendedScanParameters.self, of: .extended) { controller, command in
            for phy in [command.le1M, command.leCoded] {
                guard phy?.listening.isValid(upTo: 0xFFFF) != false else { return .invalidHCICommandParameters }
            }
            guard command.leCoded == nil || controller.understands(.leCoded) else {
                return .unsupportedFeatureOrParameterValue
            }
            return controller.setScan(
                command.ownAddressType,
                command.scanningFilterPolicy,
                le1M: command.le1M,
                leCoded: command.leCoded
            )
        }
        carryOut(LESetExtendedScanEnable.self, of: .extended) { controller, command in
            guard command.enable else { return controller.disableScan() }
            let duration = Duration.milliseconds(10 * Int(command.duration))
            let period = Duration.milliseconds(1280 * Int(command.period))
            let isPeriodic = command.duration != 0 && command.period != 0
            guard !isPeriodic || duration < period, command.filterDuplicates != .resetEachPeriod || isPeriodic else {
                return .invalidHCICommandParameters
            }
            return controller.enableScan(
                command.filterDuplicates,
                isExtended: true,
                duration: duration,
                period: isPeriodic ? period : .zero
            )
        }
    }
}

extension VirtualController {
    fileprivate func setScan(
        _ ownAddressType: OwnAddressType,
        _ filterPolicy: ScanningFilterPolicy,
        le1M: Scanner.PHYParameters?,
        leCoded: Scanner.PHYParameters?
    ) -> HCIErrorCode {
        guard !scanner.isEnabled else { return .commandDisallowed }
        // The controller does not support decision PDUs.
        guard filterPolicy.rawValue <= ScanningFilterPolicy.extendedFiltered.rawValue else {
            return .unsupportedFeatureOrParameterValue
        }
        guard !filterPolicy.isExtended || configuration.features.contains(.extendedScanningFilterPolicies) else {
            return .unsupportedFeatureOrParameterValue
        }
        scanner.ownAddressType = ownAddressType
        scanner.filterPolicy = filterPolicy
        scanner.le1M = le1M
        scanner.leCoded = leCoded
        return .success
    }

    fileprivate func disableScan() -> HCIErrorCode {
        scanner.run = nil
        air.cancel(scanner.timer)
        updateListening()
        return .success
    }

    /// Enables scanning.
    ///
    /// - Parameters:
    ///   - duration: the duration of a scan; zero for no limit.
    ///   - period: the time between the starts of two scans; zero to scan once.
    fileprivate func enableScan(
        _ filter: DuplicateFilter,
        isExtended: Bool,
        duration: Duration = .zero,
        period: Duration = .zero
    ) -> HCIErrorCode {
        switch scanner.ownAddressType {
        case .random, .resolvableOrRandom:
            guard randomAddress != nil else { return .invalidHCICommandParameters }
        case .public, .resolvableOrPublic: break
        }
        scanner.isExtended = isExtended
        scanner.lastRun += 1
        air.cancel(scanner.timer)
        scanner.run = Scanner.Run(number: scanner.lastRun, start: air.now, filter: filter)
        updateListening()
        if duration > .zero { scanForPeriod(scanner.lastRun, duration, period) }
        return .success
    }

    /// Stops scanning after its duration. If there is a period, scanning continues at the start of the next.
    private func scanForPeriod(_ number: UInt64, _ duration: Duration, _ period: Duration) {
        schedule(after: duration, on: scanner.timer) { controller in
            guard controller.scanner.run?.number == number else { return }
            guard period > .zero else {
                _ = controller.disableScan()
                return controller.tellLE(LEScanTimeout())
            }
            controller.scanner.run?.isPaused = true
            controller.updateListening()
            controller.schedule(after: period - duration, on: controller.scanner.timer) { controller in
                guard var run = controller.scanner.run, run.number == number else { return }
                run.isPaused = false
                run.start = controller.air.now
                if run.filter == .resetEachPeriod { run.reported = [] }
                controller.scanner.run = run
                controller.updateListening()
                controller.scanForPeriod(number, duration, period)
            }
        }
    }

    /// Informs the air whether this controller listens for advertisements.
    func updateListening() {
        air.setListening(self, scanner.isListening || initiator != nil)
    }

    /// Stops all reception of advertisements and periodic trains.
    func stopListening() {
        air.setListening(self, false)
        air.cancel(scanner.timer)
        stopSynchronizing()
    }
}
