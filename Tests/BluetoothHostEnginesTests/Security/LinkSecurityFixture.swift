import BLEByteCoding
import BLECryptography
import BLEHCI
import BLESMP
import BLEVirtualController
import BluetoothTypes

@testable import BluetoothHost

/// A ``LinkSecurityEngine`` and the facts that it needs.
struct SecuritySide {
    static let link = LinkIdentifier(handle: 0x0040, serial: 1)
    static let start = Instant(nanoseconds: 1_000_000_000_000)
    static let centralAddress = DeviceAddress(0xC000_0000_00C0, isRandom: true)
    static let peripheralAddress = DeviceAddress(0xC000_0000_00B0, isRandom: true)
    static let privateAddress = DeviceAddress(0x4000_0000_0001, isRandom: true)
    static let strength = KeyStrength(isAuthenticated: false, isSecureConnections: true, keySize: 16)
    static let key = LongTermKey(value: 0x1234, strength: strength)
    static let call = SecurityCaller.call(CallToken(index: 1, generation: 0))
    static let otherCall = SecurityCaller.call(CallToken(index: 2, generation: 0))

    var engine: LinkSecurityEngine
    var context: SecurityContext

    /// - Parameters:
    ///   - privateRole: the role of the device that is connected with a private address; nil for none.
    ///   - bond: the bond with the peer; nil if it is not bonded.
    init(
        _ role: SecurityChannel<SwiftCryptography>.Role,
        privateRole: SecurityChannel<SwiftCryptography>.Role? = nil,
        bond: Bond? = nil,
        hasPairingHandler: Bool = true,
        policy change: (inout SecurityPolicy) -> Void = { _ in }
    ) {
        let identityAddress = role == .central ? SecuritySide.centralAddress : SecuritySide.peripheralAddress
        let own = privateRole == role ? SecuritySide.privateAddress : identityAddress
        let peer =
            privateRole == nil || privateRole == role ? SecuritySide.peer(of: role) : SecuritySide.privateAddress
        var policy = SecurityPolicy()
        change(&policy)
        let identity = LocalIdentity(address: identityAddress, resolvingKey: nil)
        context = SecurityContext(
            now: SecuritySide.start,
            peer: peer,
            bond: bond,
            bondStrength: bond?.strength,
            isPairingWindowOpen: false,
            hasPairingHandler: hasPairingHandler,
            localIdentity: identity,
            random: SeededGenerator(seed: role == .central ? 1 : 2)
        )
        engine = LinkSecurityEngine(
            link: SecuritySide.link,
            securityManager: SecurityChannel(
                role: role,
                ownAddress: own,
                peerAddress: peer,
                identity: identity,
                functions: SwiftCryptography()
            ),
            policy: policy,
            context
        )
    }

    /// The address of the peer of a device in this role.
    static func peer(of role: SecurityChannel<SwiftCryptography>.Role) -> DeviceAddress {
        role == .central ? peripheralAddress : centralAddress
    }

    /// The bond that a device in this role has with its peer.
    static func bond(_ role: SecurityChannel<SwiftCryptography>.Role, key: LongTermKey? = key) -> Bond {
        var bond = Bond(identity: peer(of: role))
        bond.centralKey = key
        bond.peripheralKey = key
        return bond
    }

    var state: LinkSecurityState { engine.state }
    var peer: DeviceAddress { context.peer }

    /// Brings the engine into a state, and publishes that.
    mutating func enter(_ state: LinkSecurityState) {
        engine.state = state
        _ = engine.contextChanged(&context)
    }

    mutating func setBond(_ bond: Bond?) {
        context.bond = bond
        context.bondStrength = bond?.strength
    }

    // MARK: Inputs

    mutating func begin() -> [SecurityEffect] { engine.linkBegan(&context) }

    mutating func changeContext() -> [SecurityEffect] { engine.contextChanged(&context) }

    mutating func require(
        _ caller: SecurityCaller = call,
        _ required: RequiredSecurity = .encryption,
        for initiative: SecurityInitiative = .app,
        pairsAgain: Bool = false
    ) -> [SecurityEffect] {
        engine.require(SecurityRequirement(caller, required, for: initiative, pairsAgain: pairsAgain), &context)
    }

    mutating func receive(_ pdu: [UInt8]) -> [SecurityEffect] { engine.receive(pdu.rawSpan, &context) }

    mutating func requestKey(of key: LongTermKey = key) -> [SecurityEffect] {
        engine.keyRequested(random: key.randomNumber, diversifier: key.encryptedDiversifier, &context)
    }

    mutating func encryptionChanged(_ status: HCIErrorCode = .success, isOn: Bool) -> [SecurityEffect] {
        engine.encryptionChanged(status, isOn: isOn, &context)
    }

    mutating func advance(_ duration: Duration) -> [SecurityEffect] {
        context.now = context.now + duration
        return engine.advance(&context)
    }

    mutating func cancel(_ caller: SecurityCaller = call) -> [SecurityEffect] { engine.cancel(caller, &context) }

    mutating func linkEnded(_ reason: HCIErrorCode) -> [SecurityEffect] {
        engine.linkEnded(.controller(reason), &context).0
    }

    mutating func decide(_ decision: BondDecision) -> [SecurityEffect] { engine.bondDecided(decision, &context) }

    // MARK: States

    /// A requirement as it waits.
    static func waiting(_ caller: SecurityCaller = call, hasPairingBegun: Bool = false) -> SecurityRequirement {
        var requirement = SecurityRequirement(caller, for: .app)
        requirement.hasPairingBegun = hasPairingBegun
        return requirement
    }

    static func encrypted(_ origin: ActiveKey.Origin, keyFailure: SecurityError? = nil) -> CurrentEncryption {
        CurrentEncryption(key: ActiveKey(strength: strength, origin: origin), keyFailure: failure(of: keyFailure))
    }

    static func unencrypted(_ keyFailure: SecurityError? = nil) -> CurrentEncryption {
        CurrentEncryption(key: nil, keyFailure: failure(of: keyFailure))
    }

    private static func failure(of error: SecurityError?) -> KeyFailure? {
        error.map { KeyFailure(key: key, error: $0) }
    }

    static func encrypting(
        _ origin: ActiveKey.Origin = .bond,
        current: CurrentEncryption = .unencrypted,
        _ waiting: SecurityRequirement...
    ) -> LinkSecurityState {
        .encrypting(
            EncryptionWork(
                key: key,
                origin: origin,
                current: current,
                deadline: start + .seconds(40),
                waiting: waiting
            )
        )
    }

    /// The outcome of a pairing of a device in this role.
    static func outcome(_ role: SecurityChannel<SwiftCryptography>.Role, isBonded: Bool = true) -> PairingOutcome {
        PairingOutcome(model: .justWorks, strength: strength, bond: bond(role), isBonded: isBonded)
    }

    /// A pairing that has encrypted the link, and whose keys the bond database has yet to decide about.
    ///
    /// - Parameter identity: the identity address that the peer has given, if it is not that of its bond.
    func completedPairing(
        _ waiting: SecurityRequirement...,
        isBonded: Bool = true,
        claiming identity: DeviceAddress? = nil
    ) -> CompletedPairing {
        var outcome = SecuritySide.outcome(engine.role, isBonded: isBonded)
        if let identity { outcome.bond.identity = identity }
        return CompletedPairing(
            outcome: outcome,
            initiative: .app,
            peer: peer,
            current: SecuritySide.encrypted(.incompletePairing),
            waiting: waiting
        )
    }

    // MARK: Effects

    static func success(_ caller: SecurityCaller = call) -> SecurityEffect { .finish(caller, .success(strength)) }

    static func failure(_ error: SecurityError, _ caller: SecurityCaller = call) -> SecurityEffect {
        .finish(caller, .failure(.security(error)))
    }

    func encryptionReport(isOn: Bool) -> SecurityEffect {
        .report(.encryptionChanged(engine.link, isOn ? SecuritySide.strength : nil))
    }

    /// The report of a pairing by just works.
    func paired(isBonded: Bool = true) -> SecurityEffect {
        let result = PairingResult(
            peer: peer,
            identity: peer,
            model: .justWorks,
            strength: SecuritySide.strength,
            isBonded: isBonded
        )
        return .report(.paired(engine.link, result))
    }

    func pairingFailed(_ error: SecurityError) -> SecurityEffect {
        .report(.pairingFailed(engine.link, peer: peer, error))
    }

    /// The published security of a link to a bonded peer.
    static func bonded(_ gate: Gate) -> SecurityEffect {
        .publish(
            SecuritySnapshot(
                strength: gate == .open ? strength : nil,
                hasKey: true,
                isIdentityUnverified: gate != .open,
                gate: gate
            )
        )
    }

    /// The published security of a link that this host ends.
    static func ending(_ error: HostError) -> SecurityEffect {
        .publish(SecuritySnapshot(isIdentityUnverified: true, gate: .failed(error)))
    }

    /// The published security of a link to a peer that is not bonded.
    static func unbonded(isEncrypted: Bool) -> SecurityEffect {
        .publish(SecuritySnapshot(strength: isEncrypted ? strength : nil))
    }
}

extension [SecurityEffect] {
    /// The PDUs that are sent.
    var pdus: [[UInt8]] {
        compactMap { effect in
            if case .send(let pdu) = effect { pdu } else { nil }
        }
    }

    /// The number of the question that the app is asked.
    var question: UInt64? {
        lazy.compactMap { effect in
            if case .ask(_, let number) = effect { number } else { nil }
        }.first
    }
}
