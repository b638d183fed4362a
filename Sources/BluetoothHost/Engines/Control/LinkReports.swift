import BLEHCI
import BluetoothTypes

/// The identifier of an observer of a link's events.
package struct LinkObservation: Hashable, Sendable {
    let value: UInt64
    let link: LinkIdentifier
}

/// Handles an event about a link on the loop, or the error that ends the observation.
package typealias LinkObserver = @Sendable (Result<LinkEvent, HostError>) -> Void

/// What an observer of a link's events wants to be reported, besides changes of parameters and PHYs.
package struct LinkEventRequest: Hashable, Sendable {
    /// Whether changes of the devices' transmit powers are reported.
    package var transmitPower: Bool
    /// The zones of path loss whose changes are reported; nil for none.
    package var pathLoss: PathLossThresholds?

    package init(transmitPower: Bool = false, pathLoss: PathLossThresholds? = nil) {
        self.transmitPower = transmitPower
        self.pathLoss = pathLoss
    }
}

/// A command that starts or stops a kind of report.
enum LinkReportStep: Equatable {
    case enableTransmitPower
    case disableTransmitPower
    case setPathLossThresholds
    case enablePathLoss
    case disablePathLoss
}

/// The observers of one link's events, and the reports that the controller sends for them.
///
/// The controller reports transmit powers and path loss only while an observer wants them. A link has one set of
/// thresholds for path loss, so observers of path loss must have the same. At most one command is in flight. A refused
/// one ends the observers that need it.
struct LinkReports {
    private struct Observer {
        let observation: LinkObservation
        let request: LinkEventRequest
    }

    /// Maximum number of observers of one link.
    static let limit = 32

    private var observers: [Observer] = []
    private var pending: LinkReportStep?
    /// The thresholds of the command in flight, if it has any.
    private var sentThresholds: PathLossThresholds?
    private var reportsTransmitPower = false
    private var reportsPathLoss = false
    /// The thresholds last sent to the controller.
    private var thresholds: PathLossThresholds?

    /// The observers, in the order in which they were added.
    var observations: [LinkObservation] { observers.map(\.observation) }

    private var wantsTransmitPower: Bool { observers.contains { $0.request.transmitPower } }
    private var wantedThresholds: PathLossThresholds? { observers.lazy.compactMap(\.request.pathLoss).first }

    /// Adds an observer.
    ///
    /// - Throws: ``HostError/invalidArgument(_:)`` if the thresholds are out of range, or differ from those of another
    ///   observer, and ``HostError/limitReached(_:)`` if there are too many observers.
    mutating func add(_ observation: LinkObservation, _ request: LinkEventRequest) throws(HostError) {
        if let pathLoss = request.pathLoss {
            guard pathLoss.isValid else {
                throw .invalidArgument("path loss thresholds out of range, or their hysteresis overlaps: \(pathLoss)")
            }
            if let wanted = wantedThresholds, wanted != pathLoss {
                throw .invalidArgument("the path loss of this link is reported already, with other thresholds")
            }
        }
        guard observers.count < LinkReports.limit else {
            throw .limitReached("\(Self.limit) observers receive the events of the link, the maximum; end one first")
        }
        observers.append(Observer(observation: observation, request: request))
    }

    mutating func remove(_ observation: LinkObservation) {
        observers.removeAll { $0.observation == observation }
    }

    /// The next command; nil if the controller reports what the observers want, or has not answered the last command.
    mutating func next() -> LinkReportStep? {
        guard pending == nil else { return nil }
        pending = nextStep
        sentThresholds = pending == .setPathLossThresholds ? wantedThresholds : nil
        return pending
    }

    private var nextStep: LinkReportStep? {
        if wantsTransmitPower != reportsTransmitPower {
            return wantsTransmitPower ? .enableTransmitPower : .disableTransmitPower
        }
        guard let wanted = wantedThresholds else { return reportsPathLoss ? .disablePathLoss : nil }
        if wanted != thresholds { return .setPathLossThresholds }
        return reportsPathLoss ? nil : .enablePathLoss
    }

    /// The command of the step that ``next()`` has returned.
    func command(_ step: LinkReportStep, _ handle: ConnectionHandle) -> ControlCommand? {
        switch step {
        case .enableTransmitPower, .disableTransmitPower:
            let isOn = step == .enableTransmitPower
            return .reportTransmitPower(
                LESetTransmitPowerReportingEnable(connectionHandle: handle, localEnable: isOn, remoteEnable: isOn)
            )
        case .setPathLossThresholds:
            return sentThresholds.map { .setPathLossThresholds(LESetPathLossReportingParameters(handle, $0)) }
        case .enablePathLoss, .disablePathLoss:
            return .reportPathLoss(
                LESetPathLossReportingEnable(connectionHandle: handle, enable: step == .enablePathLoss)
            )
        }
    }

    /// Records that a command has succeeded.
    mutating func succeeded(_ step: LinkReportStep) {
        guard pending == step else { return }
        pending = nil
        switch step {
        case .enableTransmitPower: reportsTransmitPower = true
        case .disableTransmitPower: reportsTransmitPower = false
        case .setPathLossThresholds: thresholds = sentThresholds
        case .enablePathLoss: reportsPathLoss = true
        case .disablePathLoss: reportsPathLoss = false
        }
    }

    /// Records that a command has failed.
    ///
    /// - Returns: the observers that end.
    mutating func failed(_ step: LinkReportStep) -> [LinkObservation] {
        guard pending == step else { return [] }
        pending = nil
        let ended: [Observer]
        switch step {
        case .enableTransmitPower: ended = observers.filter(\.request.transmitPower)
        case .setPathLossThresholds, .enablePathLoss: ended = observers.filter { $0.request.pathLoss != nil }
        case .disableTransmitPower:
            reportsTransmitPower = false
            ended = []
        case .disablePathLoss:
            reportsPathLoss = false
            ended = []
        }
        let observations = ended.map(\.observation)
        observers.removeAll { observations.contains($0.observation) }
        return observations
    }

    /// Ends all observers.
    mutating func removeAll() -> [LinkObservation] {
        defer { self = LinkReports() }
        return observations
    }

    /// The observers that want an event.
    func observations(of event: LinkEvent) -> [LinkObservation] {
        observers.filter { observer in
            switch event {
            case .transmitPowerChanged: observer.request.transmitPower
            case .pathLossZoneEntered: observer.request.pathLoss != nil
            case .parametersChanged, .physChanged, .eventsDropped: true
            }
        }.map(\.observation)
    }
}
