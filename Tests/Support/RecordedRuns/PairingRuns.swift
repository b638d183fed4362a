import BLE

/// Accepts every question, and shows the numbers on this side to the user of the peer.
private struct Person: PairingDelegate {
    /// The passkey that the peer shows.
    static let passkey: UInt32 = 123_456

    let stage: any Stage

    func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
        switch inquiry.question {
        case .consent: return .accept
        case .showPasskey(let passkey):
            stage.tell("passkey \(passkey)")
            return .accept
        case .enterPasskey: return .passkey(Person.passkey)
        case .compare(let number):
            stage.tell("compare \(number)")
            return .accept
        }
    }
}

/// A way in which devices pair in a run.
private struct Model {
    let name: String
    let isSecureConnections: Bool
    let ioCapability: IOCapability
    /// Whether data is transferred out of band: the temporary key, or this device's confirm value.
    var isOutOfBand = false

    static let all: [Model] = [
        Model(name: "legacy-just-works", isSecureConnections: false, ioCapability: .noInputNoOutput),
        Model(name: "legacy-passkey-shown", isSecureConnections: false, ioCapability: .displayOnly),
        Model(name: "legacy-passkey-typed", isSecureConnections: false, ioCapability: .keyboardOnly),
        Model(
            name: "legacy-out-of-band",
            isSecureConnections: false,
            ioCapability: .noInputNoOutput,
            isOutOfBand: true
        ),
        Model(name: "secure-just-works", isSecureConnections: true, ioCapability: .noInputNoOutput),
        Model(name: "secure-passkey-shown", isSecureConnections: true, ioCapability: .displayOnly),
        Model(name: "secure-passkey-typed", isSecureConnections: true, ioCapability: .keyboardOnly),
        Model(name: "secure-comparison", isSecureConnections: true, ioCapability: .displayYesNo),
        Model(
            name: "secure-out-of-band",
            isSecureConnections: true,
            ioCapability: .noInputNoOutput,
            isOutOfBand: true
        ),
    ]

    func prepare(_ adapter: Adapter, _ stage: any Stage) async {
        var policy = SecurityPolicy()
        policy.ioCapability = ioCapability
        if isOutOfBand, isSecureConnections {
            let (secret, forPeer) = await adapter.makeOutOfBandData()
            policy.ownOutOfBandData = secret
            if case .secureConnections(let confirm, let random) = forPeer {
                stage.tell("outOfBand \(String(confirm, radix: 16)) \(String(random, radix: 16))")
            }
        } else if isOutOfBand {
            policy.peerOutOfBandData = .temporaryKey(0x0102_0304_0506_0708_090A_0B0C_0D0E_0F10)
        }
        await adapter.setSecurityPolicy(policy)
        await adapter.setPairingDelegate(Person(stage: stage))
    }
}

extension RecordedRun {
    /// A central that pairs, and uses the bond when it connects again.
    static let pairings: [RecordedRun] =
        Model.all.map { model in
            RecordedRun("pair-" + model.name) { adapter, stage in
                await model.prepare(adapter, stage)
                try await adapter.meet(on: stage) { peer in
                    try await peer.pair()
                    try await stage.settle()
                    _ = try await peer.read(uuid: Bumble.encrypted)
                }
            }
        } + [
            reconnection("reconnect-legacy", isSecureConnections: false),
            reconnection("reconnect-secure", isSecureConnections: true),
            RecordedRun("pairing-refused") { adapter, stage in
                try await adapter.meet(on: stage) { peer in _ = try? await peer.pair() }
            },
        ]

    private static func reconnection(_ name: String, isSecureConnections: Bool) -> RecordedRun {
        RecordedRun(name) { adapter, stage in
            var policy = SecurityPolicy()
            policy.offersSecureConnections = isSecureConnections
            await adapter.setSecurityPolicy(policy)
            await adapter.setPairingDelegate(Person(stage: stage))
            try await adapter.meet(on: stage) { peer in
                try await peer.pair()
            }
            try await adapter.meet(on: stage) { peer in
                _ = try await peer.read(uuid: Bumble.encrypted)
            }
        }
    }

    /// A peripheral that its client pairs with. When the client connects again, it has the bond's key.
    static let servedPairings: [RecordedRun] = Model.all.map { model in
        RecordedRun("served-pair-" + model.name) { adapter, stage in
            await model.prepare(adapter, stage)
            try await adapter.serve(stage, connections: 2) { _, _ in }
        }
    }
}
