import BLEByteCoding

/// The context of one step of a pairing: the toolbox and random numbers that it uses, and the resulting steps.
struct PairingContext<Functions: SecurityFunctions, Generator: RandomNumberGenerator> {
    let toolbox: Toolbox<Functions>
    var random: Generator
    private(set) var steps: [PairingStep] = []

    init(toolbox: Toolbox<Functions>, random: Generator) {
        self.toolbox = toolbox
        self.random = random
    }

    /// Whether a PDU was sent.
    var hasSent: Bool {
        steps.contains { if case .send = $0 { true } else { false } }
    }

    /// Whether a keypress notification of the peer was reported.
    var hasReportedKeypress: Bool {
        steps.contains { if case .keyPressed = $0 { true } else { false } }
    }

    mutating func send(_ command: some SecurityManagerCommand) {
        steps.append(.send(PacketBuffer.bytes { command.encode(into: &$0) }))
    }

    mutating func ask(_ question: PairingQuestion) {
        steps.append(.ask(question))
    }

    mutating func checkPolicy(_ model: AssociationModel, _ strength: KeyStrength) {
        steps.append(.checkPolicy(model, strength))
    }

    mutating func report(_ kind: KeypressNotification.Kind) {
        steps.append(.keyPressed(kind))
    }

    mutating func encrypt(as role: PairingRole, with key: LongTermKey) {
        steps.append(role == .initiator ? .encrypt(key) : .expectEncryption(key))
    }

    /// Generates 128 random bits, the most significant 64 first.
    mutating func randomNumber() -> UInt128 {
        let high = random.next()
        return UInt128(high) << 64 | UInt128(random.next())
    }

    /// Generates a passkey of six digits.
    mutating func passkey() -> UInt32 {
        UInt32.random(in: 0...Passkey.maximum, using: &random)
    }
}
