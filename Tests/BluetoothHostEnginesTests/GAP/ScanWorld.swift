import BLEByteCoding
import BLEHCI
import BluetoothTypes

@testable import BluetoothHost

/// The scanning of a controller, by the rules of the specification (Vol 4, Part E, 7.8.10, 7.8.11, 7.8.64 and 7.8.65).
struct SimulatedScan: Equatable {
    var isOn = false
    var isActive = false
    var interval: UInt16 = 0
    var window: UInt16 = 0
    var phys = PHYSet.le1M
    var filtersDuplicates = false

    mutating func perform(_ command: GAPCommand) -> HCIErrorCode {
        if let parameters = command.decode(LESetScanParameters.self) {
            guard !isOn else { return .commandDisallowed }
            isActive = parameters.leScanType == .active
            (interval, window) = (parameters.leScanInterval, parameters.leScanWindow)
        } else if let parameters = command.decode(LESetExtendedScanParameters.self) {
            guard !isOn else { return .commandDisallowed }
            guard let either = parameters.le1M ?? parameters.leCoded else { return .invalidHCICommandParameters }
            isActive = either.scanType == .active
            (interval, window, phys) = (either.scanInterval, either.scanWindow, parameters.scanningPHYs)
        } else if let enable = command.decode(LESetExtendedScanEnable.self) {
            isOn = enable.enable
            filtersDuplicates = enable.filterDuplicates == .enabled
        } else if let enable = command.decode(LESetScanEnable.self) {
            isOn = enable.leScanEnable
            filtersDuplicates = enable.filterDuplicates
        } else {
            return .unknownHCICommand
        }
        return .success
    }

    /// Whether the controller does what the plan's model says.
    func agrees(with model: ScanPlan.Controller) -> Bool {
        switch model {
        case .off: return !isOn
        case .unknown: return true
        case .on(let parameters):
            return isOn && isActive == parameters.isActive && interval == parameters.interval
                && window == parameters.window && phys == parameters.phys && !filtersDuplicates
        }
    }
}

/// A ``ScanPlan`` with a controller.
struct ScanWorld: PlanWorld {
    static let refusal = CommandFailure.status(.commandDisallowed, LESetScanEnable.opcode)

    var plan: ScanPlan
    var controller = SimulatedScan()
    var context = ScanPlan.Context()
    var now = Instant(nanoseconds: 0)
    /// Whether the host has scheduled a pass.
    var isPassDue = false
    var pending: PlannedCommand?
    /// All commands that were sent.
    var sent: [GAPCommand] = []
    /// The scans that were reported to have ended, in this order.
    var ended: [ScanIdentifier] = []
    var resets = 0
    var restarts = 0

    init(silenceTimeout: Duration? = .seconds(90)) {
        plan = ScanPlan(silenceTimeout: silenceTimeout)
    }

    // MARK: Inputs

    mutating func start(_ number: UInt64, _ options: ScanOptions = ScanOptions()) {
        plan.scans.insert(ScanIdentifier(value: number), options)
        request()
    }

    mutating func stop(_ number: UInt64) {
        if plan.scans.remove(ScanIdentifier(value: number)) { request() }
    }

    mutating func request() {
        if plan.requestRun() { isPassDue = true }
    }

    mutating func nextCommand() -> PlannedCommand? { plan.nextCommand(context) }

    mutating func performByController(_ command: GAPCommand) -> HCIErrorCode { controller.perform(command) }

    mutating func finished(_ step: GAPStep) { plan.finished(step, at: now) }

    mutating func failed(_ step: GAPStep, _ failure: CommandFailure) -> [ScanEffect] {
        plan.failed(step, failure, at: now)
    }

    /// Runs until the plan has nothing to do.
    mutating func settle() {
        while isPassDue || pending != nil {
            pass()
            reply()
        }
    }

    mutating func advance(_ duration: Duration) {
        now = now + duration
        perform(plan.advance(to: now, mayReset: true))
    }

    mutating func resetController() {
        abortPending()
        plan.controllerLost()
        controller = SimulatedScan()
        request()
    }

    mutating func perform(_ effects: [ScanEffect]) {
        for effect in effects {
            switch effect {
            case .end(let scan, _): ended.append(scan)
            case .restart:
                restarts += 1
                request()
            case .reset:
                resets += 1
                resetController()
            case .run: request()
            case .cancelInitiation, .refused, .codedRefused: break
            }
        }
    }
}
