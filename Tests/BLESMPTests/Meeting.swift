import BLEByteCoding
import BLECryptography
import BLESMP
import BluetoothTypes

import struct BLEVirtualController.SeededGenerator

typealias Channel = SecurityChannel<SwiftCryptography>

/// A generator of the test's random numbers, followed by those of a seed.
struct ScriptedGenerator: RandomNumberGenerator {
    var script: [UInt64]
    private var seeded: SeededGenerator

    init(script: [UInt64], seed: UInt64) {
        self.script = script
        seeded = SeededGenerator(seed: seed)
    }

    mutating func next() -> UInt64 {
        script.isEmpty ? seeded.next() : script.removeFirst()
    }
}

/// One device of a meeting: its Security Manager, and the results of its pairing.
struct Party {
    var channel: Channel
    var random: ScriptedGenerator
    var outcome: PairingOutcome?
    var failure: PairingFailure?
    /// The questions that it has not answered yet.
    var questions: [PairingQuestion] = []
    /// The key with which its controller would encrypt the link.
    var expectedKey: LongTermKey?
    var securityRequests: [SecurityRequirements] = []

    init(_ role: Channel.Role, _ parameters: PairingParameters, seed: UInt64) {
        let (own, peer) =
            role == .central ? (Meeting.central, Meeting.peripheral) : (Meeting.peripheral, Meeting.central)
        channel = Channel(
            role: role,
            ownAddress: own,
            peerAddress: peer,
            identity: role == .central ? Meeting.centralIdentity : Meeting.peripheralIdentity,
            functions: SwiftCryptography()
        )
        channel.parameters = parameters
        random = ScriptedGenerator(script: [], seed: seed)
    }

    var hasEnded: Bool { outcome != nil || failure != nil }
}

/// Two devices on one link, with their users. It carries their PDUs, encrypts the link, and lets a test interfere.
struct Meeting {
    static let central = DeviceAddress(0x4A_1122_3344_55, isRandom: true)
    static let peripheral = DeviceAddress(0xC6_5544_3322_11, isRandom: true)
    static let centralIdentity = LocalIdentity(
        address: DeviceAddress(0x00_1B_DC_07_32_EF, isRandom: false),
        resolvingKey: 0xEC02_34A3_57C8_AD05_3410_10A6_0A39_7D9B
    )
    static let peripheralIdentity = LocalIdentity(address: peripheral, resolvingKey: 0x1111_2222_3333_4444)

    /// An item on its way.
    enum Item: Equatable {
        case pdu([UInt8], to: Channel.Role)
        /// The central's controller starts encryption.
        case encryption(LongTermKey)
    }

    /// A fault at the PDU with a number, counted over the whole meeting.
    enum Meddling: Equatable, CustomStringConvertible {
        case lose(Int)
        case `repeat`(Int)
        case swapWithNext(Int)
        case corrupt(Int, octet: Int, with: UInt8)
        case endLink(Int)

        var number: Int {
            switch self {
            case .lose(let number), .repeat(let number), .swapWithNext(let number), .endLink(let number): number
            case .corrupt(let number, _, _): number
            }
        }

        var description: String {
            switch self {
            case .lose(let number): "PDU \(number) lost"
            case .repeat(let number): "PDU \(number) repeated"
            case .swapWithNext(let number): "PDU \(number) swapped with the next"
            case .corrupt(let number, let octet, let change): "byte \(octet) of PDU \(number) changed by \(change)"
            case .endLink(let number): "link ended at PDU \(number)"
            }
        }
    }

    var central: Party
    var peripheral: Party
    var now = Instant(nanoseconds: 1_000_000_000)
    var meddling: Meddling?
    /// Returns the PDU that arrives in place of the PDU with a number.
    var replacement: ((Int, [UInt8]) -> [UInt8])?
    /// Whether the link can be encrypted; otherwise an attempt has no effect.
    var encrypts = true
    /// The passkey that the users type if both sides ask for one, or a wrong passkey.
    var typed: UInt32?
    /// Whether the users accept pairings; otherwise they do not answer yet.
    var consents = true
    /// Whether the owners let pairings begin to which the users consent later.
    var policyAnswer = PairingAnswer.accept
    /// The users' answer to the numbers shown; nil if they compare the numbers.
    var verdict: PairingAnswer?
    /// The PDUs sent, in order.
    private(set) var sent: [(pdu: [UInt8], to: Channel.Role)] = []
    /// Number of PDUs sent before the link was encrypted.
    private(set) var sentInPlain: Int?
    private(set) var encryptionKey: LongTermKey?
    /// The keypress notifications, each with the side that received it.
    var keysPressed: [(KeypressNotification.Kind, of: Channel.Role)] = []
    /// The questions asked, in order.
    private(set) var asked: [(PairingQuestion, of: Channel.Role)] = []
    private var items: [Item] = []
    private var shown: [UInt32] = []
    private var compared: [UInt32] = []

    init(central: PairingParameters, peripheral: PairingParameters, seed: UInt64 = 1) {
        self.central = Party(.central, central, seed: seed &* 2)
        self.peripheral = Party(.peripheral, peripheral, seed: seed &* 2 &+ 1)
    }

    // MARK: Doing

    /// Starts pairing at the central, and runs until nothing more happens.
    mutating func pair() {
        start(.central)
        run()
    }

    mutating func start(_ role: Channel.Role) {
        let now = now
        perform(role) { $0.channel.start(at: now, random: &$0.random) }
    }

    /// Delivers the pending items, and lets the users answer, until nothing more happens.
    mutating func run() {
        while true {
            if !items.isEmpty {
                deliver(items.removeFirst())
            } else if !answerOne() {
                return
            }
        }
    }

    /// Advances the time by the longest timeout of either side, and delivers the PDUs that are pending then.
    mutating func letTimePass() {
        now = now + .seconds(30)
        for role in [Channel.Role.central, .peripheral] {
            let now = now
            perform(role) { $0.channel.advance(to: now) }
        }
        run()
    }

    mutating func endLink() {
        items = []
        for role in [Channel.Role.central, .peripheral] { perform(role) { $0.channel.linkEnded() } }
    }

    /// Forgets the results of the last pairing.
    mutating func forget() {
        (central.outcome, central.failure, central.expectedKey) = (nil, nil, nil)
        (peripheral.outcome, peripheral.failure, peripheral.expectedKey) = (nil, nil, nil)
        (central.questions, peripheral.questions, shown, compared) = ([], [], [], [])
        (meddling, replacement, encryptionKey, sentInPlain, sent, asked) = (nil, nil, nil, nil, [], [])
    }

    mutating func perform(_ role: Channel.Role, _ action: (inout Party) -> [PairingStep]) {
        let steps = role == .central ? action(&central) : action(&peripheral)
        for step in steps { take(step, from: role) }
    }

    mutating func answer(_ answer: PairingAnswer, as role: Channel.Role) {
        let now = now
        perform(role) { $0.channel.answer(answer, at: now, random: &$0.random) }
    }

    mutating func receive(_ pdu: [UInt8], as role: Channel.Role) {
        let now = now
        perform(role) { $0.channel.receive(pdu.rawSpan, at: now, random: &$0.random) }
    }

    mutating func encryptionChanged(to strength: KeyStrength?, as role: Channel.Role) {
        let now = now
        perform(role) { $0.channel.encryptionChanged(to: strength, at: now, random: &$0.random) }
    }

    // MARK: Happening

    private mutating func take(_ step: PairingStep, from role: Channel.Role) {
        func change(_ change: (inout Party) -> Void) {
            if role == .central { change(&central) } else { change(&peripheral) }
        }
        switch step {
        case .send(let pdu): send(pdu, to: role == .central ? .peripheral : .central)
        case .ask(let question):
            asked.append((question, of: role))
            change { $0.questions.append(question) }
            if case .showPasskey(let passkey) = question { shown.append(passkey) }
            if case .compare(let number) = question { compared.append(number) }
        case .checkPolicy: answer(policyAnswer, as: role)
        case .keyPressed(let kind): keysPressed.append((kind, of: role))
        case .encrypt(let key): items.append(.encryption(key))
        case .expectEncryption(let key): change { $0.expectedKey = key }
        case .securityRequested(let requirements): change { $0.securityRequests.append(requirements) }
        case .completed(let outcome): change { $0.outcome = outcome }
        case .failed(let failure):
            change {
                $0.failure = failure
                $0.expectedKey = nil
                $0.questions = []
            }
        }
    }

    private mutating func send(_ pdu: [UInt8], to role: Channel.Role) {
        let number = sent.count
        sent.append((pdu, to: role))
        let pdu = replacement?(number, pdu) ?? pdu
        switch meddling {
        case .lose(number): break
        case .repeat(number): items += [.pdu(pdu, to: role), .pdu(pdu, to: role)]
        case .corrupt(number, let octet, let change):
            var pdu = pdu
            pdu[octet] ^= change
            items.append(.pdu(pdu, to: role))
        case .endLink(number): endLink()
        case .swapWithNext(let first) where first + 1 == number:
            // Inserted behind the other PDU only if that is still on its way; otherwise there is nothing to swap with.
            let last = items.lastIndex { if case .pdu(_, role) = $0 { true } else { false } }
            items.insert(.pdu(pdu, to: role), at: last ?? items.endIndex)
        default: items.append(.pdu(pdu, to: role))
        }
    }

    private mutating func deliver(_ item: Item) {
        switch item {
        case .pdu(let pdu, let role):
            receive(pdu, as: role)
        case .encryption(let key):
            guard encrypts else { return }
            guard let expected = peripheral.expectedKey else {
                // The peripheral has no key.
                return encryptionChanged(to: nil, as: .central)
            }
            guard expected.value == key.value else { return endLink() }
            encryptionKey = key
            sentInPlain = sent.count
            encryptionChanged(to: expected.strength, as: .peripheral)
            encryptionChanged(to: key.strength, as: .central)
        }
    }

    /// Answers one question that can be answered now.
    private mutating func answerOne() -> Bool {
        for role in [Channel.Role.central, .peripheral] {
            let questions = role == .central ? central.questions : peripheral.questions
            for (index, question) in questions.enumerated() {
                guard let answer = answer(to: question) else { continue }
                if role == .central {
                    central.questions.remove(at: index)
                } else {
                    peripheral.questions.remove(at: index)
                }
                self.answer(answer, as: role)
                return true
            }
        }
        return false
    }

    private func answer(to question: PairingQuestion) -> PairingAnswer? {
        switch question {
        case .consent: consents ? .accept : nil
        case .showPasskey: nil
        case .enterPasskey: (typed ?? shown.last).map { .passkey($0) }
        case .compare:
            // The users compare the numbers once both are shown.
            compared.count < 2 ? nil : verdict ?? (compared[0] == compared[1] ? .accept : .refuse)
        }
    }
}
