import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes

@testable import BluetoothHost

/// Two security engines that are connected to each other, without hosts, controllers or time.
struct SecurityPair {
    typealias Role = SecurityChannel<SwiftCryptography>.Role

    var central: SecuritySide
    var peripheral: SecuritySide
    /// The databases, which decide about bonds.
    var bonds: [Role: BondDatabase] = [:]
    /// What each side was asked, and how it answers.
    var answers: [Role: PairingAnswer] = [.central: .accept, .peripheral: .accept]
    /// Whether the central's controller refreshes each encryption at once, with the same key.
    var refreshesEncryption = false
    /// What the sides have reported or finished, in order.
    var log: [Role: [SecurityEffect]] = [.central: [], .peripheral: []]
    /// The gates that the sides have published, each change once.
    var gates: [Role: [Gate]] = [:]
    /// The gates that were published when the bond databases decided.
    private(set) var gatesAtDecision: [Role: Gate] = [:]
    private var queue: [(Role, SecurityEffect)] = []

    init(_ central: SecuritySide, _ peripheral: SecuritySide) {
        self.central = central
        self.peripheral = peripheral
        for role in [Role.central, .peripheral] { bonds[role] = BondSample.database() }
    }

    /// Gives one side an input, and performs all that follows from it.
    mutating func perform(_ role: Role, _ input: (inout SecuritySide) -> [SecurityEffect]) {
        queue += side(role, input).map { (role, $0) }
        while !queue.isEmpty {
            let (role, effect) = queue.removeFirst()
            perform(effect, of: role)
        }
    }

    private mutating func side(
        _ role: Role,
        _ input: (inout SecuritySide) -> [SecurityEffect]
    ) -> [SecurityEffect] {
        role == .central ? input(&central) : input(&peripheral)
    }

    private mutating func enqueue(_ role: Role, _ input: (inout SecuritySide) -> [SecurityEffect]) {
        queue += side(role, input).map { (role, $0) }
    }

    private mutating func perform(_ effect: SecurityEffect, of role: Role) {
        let other: Role = role == .central ? .peripheral : .central
        switch effect {
        case .send(let pdu): enqueue(other) { $0.receive(pdu) }
        case .enableEncryption(let key): encrypt(with: key)
        case .ask(_, let number):
            let answer = answers[role] ?? .refuse
            enqueue(role) { $0.engine.answered(number, answer, &$0.context) }
        case .decideBond(let outcome, let isForApp, let isConfirmed):
            decide(role, outcome, isForApp: isForApp, isConfirmed: isConfirmed)
        case .publish(let snapshot):
            if gates[role]?.last != snapshot.gate { gates[role, default: []].append(snapshot.gate) }
        case .keyReply: break
        default: log[role, default: []].append(effect)
        }
    }

    /// What the two controllers do.
    private mutating func encrypt(with key: LongTermKey, isRefresh: Bool = false) {
        let effects = side(.peripheral) { $0.requestKey(of: key) }
        queue += effects.map { (.peripheral, $0) }
        if effects.contains(.keyReply(key)) {
            for role in [Role.central, .peripheral] { enqueue(role) { $0.encryptionChanged(isOn: true) } }
            if refreshesEncryption, !isRefresh { encrypt(with: key, isRefresh: true) }
        } else {
            enqueue(.central) { $0.encryptionChanged(.pinOrKeyMissing, isOn: false) }
        }
    }

    private mutating func decide(_ role: Role, _ outcome: PairingOutcome, isForApp: Bool, isConfirmed: Bool) {
        guard var database = bonds[role] else { return }
        let peer = role == .central ? central.peer : peripheral.peer
        let (decision, _) = database.admit(
            outcome,
            from: peer,
            keeping: nil,
            isForApp: isForApp,
            isConfirmed: isConfirmed,
            inUse: []
        )
        bonds[role] = database
        gatesAtDecision[role] = (role == .central ? central : peripheral).engine.published.gate
        enqueue(role) { side in
            if decision == .bonded {
                side.context.peer = outcome.bond.identity
                side.context.bond = outcome.bond
                side.context.bondStrength = outcome.strength
            }
            return side.decide(decision)
        }
    }
}
