import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

/// Two hosts on one link, as far as security is concerned: engines, bonds, apps that answer questions, and controllers.
///
/// Nothing arrives by itself. The test decides which host receives something next. So PDUs, events of the controllers,
/// answers and calls meet in any order. After each input, ``errors`` contains the faults that were found.
struct SecurityWorld {
    typealias Role = SecurityChannel<SwiftCryptography>.Role

    /// Something that is on its way to a host.
    enum Delivery {
        case pdu([UInt8])
        case keyRequest(LongTermKey)
        case encryptionRefused(LongTermKey)
        case encryptionChanged(HCIErrorCode, isOn: Bool)
        /// The time at which a host without a pairing handler decides about a question.
        case noAnswer(UInt64)
        case disconnected(HCIErrorCode)
    }

    /// A call that waits for the link to be secure.
    struct Call {
        let token: CallToken
        let required: RequiredSecurity
    }

    struct Host {
        var side: SecuritySide
        var bonds: BondDatabase
        var inbox: [Delivery] = []
        var question: (number: UInt64, inquiry: PairingInquiry)?
        var calls: [Call] = []
        /// Whether the controller has reported that the link is encrypted.
        var isEncrypted = false
        /// Whether the devices have paired on the link, or the peer was verified.
        var isVerified = false
        var hasEnded = false
    }

    /// How often something has happened.
    struct Counts {
        var paired = 0
        var failedPairings = 0
        var verified = 0
        var succeeded = 0
        var failed = 0
        var disconnections = 0
        var questionsOfReplacement = 0
    }

    static let roles: [Role] = [.central, .peripheral]

    var central: Host
    var peripheral: Host
    var random: SeededGenerator
    var counts = Counts()
    /// The faults that were found, with the states in which they occurred.
    private(set) var errors: [String] = []
    /// The names of the states that a host was in after an input.
    private(set) var states: Set<String> = []
    /// The passkey that a host has shown last.
    private(set) var passkey: UInt32 = 0
    /// The key with which the central's controller begins to encrypt; nil if it does not.
    private var requestedKey: LongTermKey?
    private var isEncryptedOnAir = false
    private var lastCall: UInt32 = 0

    init(_ central: SecuritySide, _ peripheral: SecuritySide, bonds: (BondDatabase, BondDatabase), seed: UInt64) {
        self.central = Host(side: central, bonds: bonds.0)
        self.peripheral = Host(side: peripheral, bonds: bonds.1)
        random = SeededGenerator(seed: seed)
        for role in SecurityWorld.roles {
            let engine = self[role].side.engine
            if engine.published.gate != .open || engine.requestsEncryption { input(role) { $0.begin() } }
        }
    }

    subscript(role: Role) -> Host {
        get { role == .central ? central : peripheral }
        set { if role == .central { central = newValue } else { peripheral = newValue } }
    }

    var hasEnded: Bool { central.hasEnded && peripheral.hasEnded }

    func other(_ role: Role) -> Role { role == .central ? .peripheral : .central }

    // MARK: Inputs

    /// Gives a host an input, performs the effects and looks for errors.
    mutating func input(_ role: Role, _ body: (inout SecuritySide) -> [SecurityEffect]) {
        perform(role, body)
        check(role)
    }

    private mutating func perform(_ role: Role, _ body: (inout SecuritySide) -> [SecurityEffect]) {
        let identity = self[role].side.peer
        self[role].side.setBond(self[role].bonds[identity]?.bond)
        self[role].side.context.bondStrength = self[role].bonds.strength(of: identity)
        self[role].side.context.reachedBondLimit = self[role].bonds.isFull ? self[role].bonds.limit : nil
        for effect in body(&self[role].side) { perform(effect, of: role) }
    }

    /// Adds a call of the app, or of an operation that needs security.
    mutating func call(_ role: Role, _ required: RequiredSecurity, isForApp: Bool, pairsAgain: Bool) {
        lastCall += 1
        let call = Call(token: CallToken(index: lastCall, generation: 0), required: required)
        self[role].calls.append(call)
        input(role) {
            $0.require(.call(call.token), required, for: isForApp ? .app : .demand, pairsAgain: pairsAgain)
        }
    }

    /// Makes the app or its absence answer the question.
    mutating func answer(_ role: Role, _ answer: PairingAnswer) {
        guard let number = self[role].question?.number else { return }
        self[role].question = nil
        input(role) { $0.engine.answered(number, answer, &$0.context) }
    }

    mutating func removeBond(_ role: Role) {
        _ = self[role].bonds.remove(self[role].side.peer, notifying: BondSample.call)
        input(role) { $0.changeContext() }
    }

    /// Lets the time pass, and fires the timers that are due.
    mutating func advance(_ duration: Duration) {
        let end = central.side.context.now + duration
        while let due = deadline, due <= end { advance(to: due) }
        advance(to: end)
    }

    private mutating func advance(to time: Instant) {
        for role in SecurityWorld.roles {
            self[role].side.context.now = time
            guard let due = self[role].side.engine.deadline, due <= time else { continue }
            input(role) { $0.advance(.zero) }
            if let next = self[role].side.engine.deadline, next <= time { report("a deadline does not end", role) }
        }
    }

    /// The earliest deadline of both hosts.
    var deadline: Instant? { earliest(central.side.engine.deadline, peripheral.side.engine.deadline) }

    var now: Instant { central.side.context.now }

    /// Makes both controllers report that the link is no longer encrypted.
    mutating func endEncryption() {
        guard isEncryptedOnAir, requestedKey == nil else { return }
        isEncryptedOnAir = false
        for role in SecurityWorld.roles { send(.encryptionChanged(.success, isOn: false), to: role) }
    }

    mutating func disconnect(_ reason: HCIErrorCode) {
        requestedKey = nil
        for role in SecurityWorld.roles { send(.disconnected(reason), to: role) }
    }

    // MARK: Deliveries

    mutating func send(_ delivery: Delivery, to role: Role) {
        if !self[role].hasEnded { self[role].inbox.append(delivery) }
    }

    /// Gives a host what arrives next. An event of the controller and the PDU behind it may change their order.
    mutating func deliver(to role: Role) {
        guard !self[role].inbox.isEmpty else { return }
        var index = 0
        if self[role].inbox.count > 1, Int.random(in: 0..<10, using: &random) == 0,
            case .encryptionChanged = self[role].inbox[0], case .pdu = self[role].inbox[1]
        {
            index = 1
        }
        switch self[role].inbox.remove(at: index) {
        case .pdu(let pdu): input(role) { $0.receive(pdu) }
        case .keyRequest(let key): input(role) { $0.requestKey(of: key) }
        case .encryptionRefused(let key):
            input(role) { $0.engine.encryptionRefused(key, .commandDisallowed, &$0.context) }
        case .encryptionChanged(let status, let isOn):
            self[role].isEncrypted = status == .success && isOn
            input(role) { $0.encryptionChanged(status, isOn: isOn) }
        case .noAnswer(let number): input(role) { $0.engine.unanswered(number, &$0.context) }
        case .disconnected(let reason):
            self[role].hasEnded = true
            self[role].isEncrypted = false
            self[role].inbox = []
            input(role) { $0.linkEnded(reason) }
        }
    }

    // MARK: Effects

    private mutating func perform(_ effect: SecurityEffect, of role: Role) {
        switch effect {
        case .send(let pdu): send(.pdu(pdu), to: other(role))
        case .enableEncryption(let key): enableEncryption(with: key)
        case .keyReply(let key): reply(with: key)
        case .ask(let inquiry, let number): ask(inquiry, number, role)
        case .withdraw(let number): withdraw(number, role)
        case .outOfBandDataUsed(let used): self[role].side.engine.outOfBandDataWasUsed(by: used, isOwn: true)
        case .identityVerified:
            counts.verified += 1
            self[role].isVerified = true
            if !self[role].isEncrypted || self[role].side.context.bond == nil { report("verified without a key", role) }
        case .finish(.call(let token), let result): finish(token, result, role)
        case .finish: break
        case .decideBond(let outcome, let isForApp, let isConfirmed):
            decideBond(role, outcome, isForApp: isForApp, isConfirmed: isConfirmed)
        case .report(.paired):
            counts.paired += 1
            self[role].isVerified = true
        case .report(.pairingFailed): counts.failedPairings += 1
        case .disconnect(let reason):
            counts.disconnections += 1
            disconnect(reason)
        case .setAuthenticatedPayloadTimeout, .unknownEncryption, .unreportedEncryption, .discardPrivateAddress,
            .attemptFailed, .attemptSucceeded, .publish, .report:
            break
        }
    }

    private mutating func enableEncryption(with key: LongTermKey) {
        guard requestedKey == nil, Int.random(in: 0..<30, using: &random) > 0 else {
            return send(.encryptionRefused(key), to: .central)
        }
        requestedKey = key
        send(.keyRequest(key), to: .peripheral)
    }

    /// The controllers' encryption procedure, after the peripheral has given a key or none (Vol 6, Part B, 5.1.3).
    private mutating func reply(with key: LongTermKey?) {
        guard let requested = requestedKey.take() else { return }
        switch key?.value {
        case nil where isEncryptedOnAir: disconnect(.pinOrKeyMissing)
        case nil: send(.encryptionChanged(.pinOrKeyMissing, isOn: false), to: .central)
        case requested.value:
            isEncryptedOnAir = true
            for role in SecurityWorld.roles where Int.random(in: 0..<40, using: &random) > 0 {
                send(.encryptionChanged(.success, isOn: true), to: role)
            }
        default: disconnect(.connectionTerminatedDueToMICFailure)
        }
    }

    private mutating func ask(_ inquiry: PairingInquiry, _ number: UInt64, _ role: Role) {
        if self[role].question != nil { report("two questions at once", role) }
        if case .awaitingConsent = self[role].side.state { counts.questionsOfReplacement += 1 }
        if case .showPasskey(let shown) = inquiry.question { passkey = shown }
        guard self[role].side.context.hasPairingHandler else { return send(.noAnswer(number), to: role) }
        self[role].question = (number, inquiry)
    }

    private mutating func withdraw(_ number: UInt64, _ role: Role) {
        guard self[role].side.context.hasPairingHandler else { return }
        if self[role].question?.number != number { report("a question is withdrawn that is not open", role) }
        self[role].question = nil
    }

    private mutating func finish(_ token: CallToken, _ result: Result<KeyStrength, HostError>, _ role: Role) {
        guard let index = self[role].calls.firstIndex(where: { $0.token == token }) else {
            return report("a call ends twice", role)
        }
        let call = self[role].calls.remove(at: index)
        switch result {
        case .success(let strength):
            counts.succeeded += 1
            let isAccepted = self[role].side.engine.policy.accepts(strength)
            if !self[role].isEncrypted || !isAccepted || !call.required.isMet(by: strength) {
                report("a call succeeds on a link that is not secure enough", role)
            }
        case .failure: counts.failed += 1
        }
    }

    private mutating func decideBond(_ role: Role, _ outcome: PairingOutcome, isForApp: Bool, isConfirmed: Bool) {
        let (decision, _) = self[role].bonds.admit(
            outcome,
            from: self[role].side.peer,
            keeping: nil,
            isForApp: isForApp,
            isConfirmed: isConfirmed,
            inUse: [self[role].side.peer]
        )
        if decision == .bonded {
            self[role].side.context.peer = outcome.bond.identity
            perform(role) { $0.changeContext() }
        }
        perform(role) { $0.decide(decision) }
    }

    // MARK: Errors

    private mutating func report(_ error: String, _ role: Role) {
        errors.append("\(role), \(self[role].side.state): \(error)")
    }

    private mutating func check(_ role: Role) {
        let host = self[role]
        let (engine, context) = (host.side.engine, host.side.context)
        states.insert("\(host.side.state)".prefix { $0 != "(" }.description)
        if let contradiction = engine.contradiction(context) { report(contradiction, role) }
        let waiting = engine.state.waiting.map(\.caller)
        if waiting.filter({ if case .call = $0 { true } else { false } }) != host.calls.map({ .call($0.token) }) {
            report("the calls that wait are not those that have not ended", role)
        }
        if engine.state.question?.number != host.question?.number, context.hasPairingHandler {
            report("the open question is not the engine's", role)
        }
        let published = engine.published
        if case .ended = engine.state {
            if engine.deadline != nil { report("a deadline after the end", role) }
            return
        }
        if published.strength != nil, !host.isEncrypted {
            report("an unencrypted link is published as encrypted", role)
        }
        if published.gate == .open, context.bond?.strength != nil, engine.policy.encryptsBondedLinks,
            !host.isEncrypted || !host.isVerified
        {
            report("the gate to a bonded peer is open without encryption or verification", role)
        }
        if engine.isIdentityVerified, context.bond == nil { report("verified without a bond", role) }
    }
}
