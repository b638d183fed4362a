import BLEHCI
import BluetoothTypes

@testable import BluetoothHost

/// The initiating of a controller, by the rules of the specification (Vol 4, Part E, 7.8.12 to 7.8.17).
struct SimulatedInitiator {
    enum State: Equatable {
        case idle
        case initiating(Set<DeviceAddress>)
        /// The event that ends the initiation is still to come.
        case ending
    }

    var state = State.idle
    private(set) var acceptList: Set<DeviceAddress> = []
    /// Whether the last initiation uses LE Coded.
    private(set) var usesCodedPHY = false
    private var usesAcceptList = false

    mutating func perform(_ command: GAPCommand) -> HCIErrorCode {
        switch command.opcode {
        case LEClearFilterAcceptList.opcode, LEAddDeviceToFilterAcceptList.opcode:
            guard state == .idle || !usesAcceptList else { return .commandDisallowed }
            if let addition = command.decode(LEAddDeviceToFilterAcceptList.self) {
                if let peer = addition.address.deviceAddress { acceptList.insert(peer) }
            } else {
                acceptList = []
            }
        case LECreateConnection.opcode:
            guard let creation = command.decode(LECreateConnection.self) else { return .invalidHCICommandParameters }
            return initiate(creation.initiatorFilterPolicy, creation.peerAddress.deviceAddress)
        case LEExtendedCreateConnection.opcode:
            guard let creation = command.decode(LEExtendedCreateConnection.self) else {
                return .invalidHCICommandParameters
            }
            return initiate(creation.initiatorFilterPolicy, creation.peerAddress, creation.leCoded != nil)
        case LECreateConnectionCancel.opcode:
            guard case .initiating = state else { return .commandDisallowed }
            state = .ending
        default: return .unknownHCICommand
        }
        return .success
    }

    private mutating func initiate(
        _ policy: InitiatorFilterPolicy,
        _ peer: DeviceAddress?,
        _ usesCodedPHY: Bool = false
    ) -> HCIErrorCode {
        guard state == .idle else { return .commandDisallowed }
        self.usesCodedPHY = usesCodedPHY
        usesAcceptList = policy == .filterAcceptList
        state = .initiating(usesAcceptList ? acceptList : peer.map { [$0] } ?? [])
        return .success
    }

    /// Whether the controller does what the plan's model says.
    func agrees(with model: ConnectionPlan.Controller) -> Bool {
        switch model {
        case .idle: state == .idle
        case .initiating(let initiation):
            state == .initiating(initiation.addresses) && usesCodedPHY == initiation.usesCodedPHY
        case .cancelling: state == .ending
        case .unknown: false
        }
    }
}

/// A ``ConnectionPlan`` with a controller.
struct ConnectionWorld: PlanWorld {
    static let refusal = CommandFailure.status(.memoryCapacityExceeded, LECreateConnection.opcode)
    static let unclear = CommandFailure.malformedReply(
        LECreateConnection.opcode,
        .truncated(needed: 1, available: 0)
    )

    /// How an attempt has ended.
    enum Outcome: Equatable {
        case connected
        case failed(HostError)
    }

    var plan = ConnectionPlan()
    var controller = SimulatedInitiator()
    var context = ConnectionPlan.Context()
    var now = Instant(nanoseconds: 0)
    /// Whether the host has scheduled a pass.
    var isPassDue = false
    var pending: PlannedCommand?
    /// All commands that were sent.
    var sent: [GAPCommand] = []
    /// The outcomes of the attempts, by their identifiers.
    var outcomes: [UInt64: [Outcome]] = [:]
    /// The addresses for which the controller has answered that a link exists.
    var existing: [Set<DeviceAddress>] = []
    /// The refusals of LE Coded that were reported.
    var codedRefusals: [CommandFailure] = []

    static func peer(_ number: UInt64) -> DeviceAddress { DeviceAddress(0xC000_0000_0000 + number, isRandom: true) }

    static func peers(_ numbers: UInt64...) -> Set<DeviceAddress> { Set(numbers.map(peer)) }

    // MARK: Calls

    mutating func connect(
        _ identifier: UInt64,
        to peers: UInt64...,
        timeout: Duration? = nil,
        parameters: ConnectionParameters = ConnectionParameters()
    ) {
        plan.add(
            ConnectionAttempt(
                identifier: identifier,
                addresses: Set(peers.map(Self.peer)),
                parameters: parameters,
                deadline: timeout.map { now + $0 }
            )
        )
        request()
    }

    mutating func cancel(_ identifier: UInt64) {
        perform(plan.endAttempt(identifier, .cancelled, at: now))
    }

    mutating func request() {
        if plan.mayInitiate, plan.requestRun() { isPassDue = true }
    }

    // MARK: Commands

    mutating func nextCommand() -> PlannedCommand? { plan.nextCommand(context, at: now) }

    mutating func performByController(_ command: GAPCommand) -> HCIErrorCode { controller.perform(command) }

    mutating func finished(_ step: GAPStep) { perform(plan.finished(step, at: now)) }

    mutating func failed(_ step: GAPStep, _ failure: CommandFailure) -> [ConnectionEffect] {
        plan.failed(step, failure, at: now)
    }

    /// Runs until the plan has nothing to do. The controller reports the ends of cancelled initiations at once.
    mutating func settle(reportingEnds: Bool = true) {
        while isPassDue || pending != nil {
            pass()
            reply()
            if reportingEnds, pending == nil { reportEnd() }
        }
    }

    mutating func resetController() {
        abortPending()
        plan.controllerLost(at: now)
        controller = SimulatedInitiator()
        request()
    }

    // MARK: Events

    mutating func advance(_ duration: Duration) {
        now = now + duration
        perform(plan.advance(to: now, context))
    }

    /// Makes the controller report the end of a cancelled initiation.
    mutating func reportEnd() {
        guard controller.state == .ending else { return }
        controller.state = .idle
        fail(.unknownConnectionIdentifier)
    }

    mutating func fail(_ status: HCIErrorCode, of peer: UInt64? = nil) {
        perform(plan.connectionFailed(status, of: peer.map { Self.peer($0) }, asCentral: true, at: now))
    }

    /// Makes the controller report a connection.
    ///
    /// - Returns: whether an attempt wanted it.
    @discardableResult
    mutating func connected(to peer: UInt64) -> Bool {
        controller.state = .idle
        let attempts = plan.takeAttempts(forAnyOf: [Self.peer(peer)])
        for attempt in attempts { outcomes[attempt.identifier, default: []].append(.connected) }
        plan.connected(at: now)
        request()
        return !attempts.isEmpty
    }

    mutating func perform(_ effects: [ConnectionEffect]) {
        for effect in effects {
            switch effect {
            case .fail(let attempt, let error): outcomes[attempt.identifier, default: []].append(.failed(error))
            case .useExistingLink(let addresses): existing.append(addresses)
            case .run: request()
            case .codedRefused(let failure): codedRefusals.append(failure)
            case .runScan: break
            }
        }
    }
}

// The commands of a plan, and a usual beginning.
extension ConnectionWorld {
    static let clear = GAPCommand(LEClearFilterAcceptList())
    static let cancel = GAPCommand(LECreateConnectionCancel())

    static func add(_ number: UInt64) -> GAPCommand {
        GAPCommand(LEAddDeviceToFilterAcceptList(address: PeerAddress(peer(number))))
    }

    /// LE Create Connection to one peer; for nil, to those on the accept list.
    static func create(_ number: UInt64?, type: AddressType? = nil) -> GAPCommand {
        let address = number.map(peer) ?? DeviceAddress(0, isRandom: false)
        let parameters = ConnectionParameters()
        return GAPCommand(
            LECreateConnection(
                leScanInterval: 0x60,
                leScanWindow: 0x60,
                initiatorFilterPolicy: number == nil ? .filterAcceptList : .peerAddress,
                peerAddress: type.map { PeerAddress(type: $0, value: address.value) } ?? PeerAddress(address),
                ownAddressType: .public,
                connectionIntervalMin: parameters.intervalMinimum,
                connectionIntervalMax: parameters.intervalMaximum,
                maxLatency: parameters.latencyInEvents,
                supervisionTimeout: parameters.timeout
            )
        )
    }

    /// A world in which the controller initiates connections to peers.
    static func initiating(_ peers: UInt64...) -> ConnectionWorld {
        var world = ConnectionWorld()
        for peer in peers { world.connect(peer, to: peer) }
        world.settle()
        world.sent = []
        return world
    }
}
