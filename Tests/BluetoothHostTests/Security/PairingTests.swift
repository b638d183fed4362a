import BLE
import BluetoothHost
import BluetoothTesting
import Testing

/// A way to pair: the capabilities of both devices, and the expected result.
struct Way: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let central: IOCapability
    let peripheral: IOCapability
    var isSecure = true
    var isOutOfBand = false
    /// The model for the central, and the model for the peripheral.
    let models: (AssociationModel, AssociationModel)

    var strength: KeyStrength {
        KeyStrength(isAuthenticated: models.0 != .justWorks, isSecureConnections: isSecure, keySize: 16)
    }

    init(
        _ description: String,
        _ central: IOCapability,
        _ peripheral: IOCapability,
        isSecure: Bool = true,
        isOutOfBand: Bool = false,
        _ models: (AssociationModel, AssociationModel)
    ) {
        testDescription = description
        self.central = central
        self.peripheral = peripheral
        self.isSecure = isSecure
        self.isOutOfBand = isOutOfBand
        self.models = models
    }

    static let all: [Way] = [
        Way("just works", .noInputNoOutput, .noInputNoOutput, (.justWorks, .justWorks)),
        Way("central shows", .displayOnly, .keyboardOnly, (.passkeyShownHere, .passkeyTypedHere)),
        Way("peripheral shows", .keyboardOnly, .displayOnly, (.passkeyTypedHere, .passkeyShownHere)),
        Way("both type", .keyboardOnly, .keyboardOnly, (.passkeyTypedOnBoth, .passkeyTypedOnBoth)),
        Way("numbers compared", .displayYesNo, .displayYesNo, (.numericComparison, .numericComparison)),
        Way("out of band", .noInputNoOutput, .noInputNoOutput, isOutOfBand: true, (.outOfBand, .outOfBand)),
        Way("legacy just works", .noInputNoOutput, .noInputNoOutput, isSecure: false, (.justWorks, .justWorks)),
        Way(
            "legacy central shows",
            .displayOnly,
            .keyboardOnly,
            isSecure: false,
            (.passkeyShownHere, .passkeyTypedHere)
        ),
        Way(
            "legacy peripheral shows",
            .keyboardOnly,
            .displayOnly,
            isSecure: false,
            (.passkeyTypedHere, .passkeyShownHere)
        ),
        Way(
            "legacy both type",
            .keyboardOnly,
            .keyboardOnly,
            isSecure: false,
            (.passkeyTypedOnBoth, .passkeyTypedOnBoth)
        ),
        Way(
            "legacy out of band",
            .noInputNoOutput,
            .noInputNoOutput,
            isSecure: false,
            isOutOfBand: true,
            (.outOfBand, .outOfBand)
        ),
    ]
}

@Suite("Pairing between two hosts")
struct PairingTests {
    private static func setUp(
        _ way: Way,
        in world: World,
        bonds: Bool = true,
        mood: Person.Mood = .init()
    ) async throws -> (LockAndPhone, Person) {
        let person = Person(in: world, mood: mood)
        func configure(_ configuration: inout Adapter.Configuration, _ capability: IOCapability) {
            configuration.security.ioCapability = capability
            configuration.security.offersSecureConnections = way.isSecure
            configuration.security.bonds = bonds
            configuration.pairingDelegate = person.hold()
        }
        let devices = try await LockAndPhone(
            in: world,
            lock: { configure(&$0, way.peripheral) },
            phone: { configure(&$0, way.central) }
        )
        if way.isOutOfBand {
            let own = await devices.lock.makeOutOfBandData(isSecureConnections: way.isSecure)
            var lock = SecurityPolicy()
            lock.bonds = bonds
            lock.offersSecureConnections = way.isSecure
            var phone = lock
            lock.ownOutOfBandData = own.secret
            phone.peerOutOfBandData = own.forPeer
            await devices.lock.setSecurityPolicy(lock)
            await devices.phone.setSecurityPolicy(phone)
        }
        return (devices, person)
    }

    @Test(
        "Both devices select the same model in either role; a bond encrypts the next link unasked",
        arguments: Way.all,
        [true, false]
    )
    func devicesSelectTheSameModelInEitherRole(_ way: Way, centralBegins: Bool) throws {
        try LockAndPhone.run { world in
            let (devices, person) = try await Self.setUp(way, in: world)
            var peer = try await devices.connect()
            if centralBegins {
                #expect(try await peer.pair() == way.strength)
            } else {
                let client = try await devices.client()
                #expect(try await devices.lock.peripheral.requestSecurity(of: client) == way.strength)
                while devices.phoneEvents.results.isEmpty { try await world.sleep(for: .milliseconds(10)) }
            }
            while devices.lockEvents.results.isEmpty { try await world.sleep(for: .milliseconds(10)) }
            #expect(devices.phoneEvents.results.map(\.model) == [way.models.0])
            #expect(devices.lockEvents.results.map(\.model) == [way.models.1])
            #expect((devices.phoneEvents.results + devices.lockEvents.results).allSatisfy { $0.isBonded })
            #expect(await devices.phone.bonds().map(\.identity) == [devices.address])
            #expect(await devices.lock.bonds().map(\.identity) == [devices.phoneAddress])
            #expect(Set(person.numbers).count == (way.models.0 == .numericComparison ? 1 : 0))
            #expect(try await peer.read(devices.handle(LockAndPhone.encrypted)) == [0x2A])
            if way.strength.isAuthenticated {
                #expect(try await peer.read(devices.handle(LockAndPhone.authenticated)) == [0x2A])
            }

            try await devices.disconnect(peer)
            let questions = person.inquiries.count
            devices.phoneEvents.clear()
            peer = try await devices.connect()
            #expect(try await peer.read(devices.handle(LockAndPhone.encrypted)) == [0x2A])
            #expect(await peer.security == way.strength)
            #expect(devices.phoneEvents.encryptions == [way.strength])
            #expect(devices.phoneEvents.results.isEmpty)
            #expect(person.inquiries.count == questions)
        }
    }

    @Test("Without bonding the keys last as long as the link", arguments: Way.all)
    func keysLastAsLongAsTheLinkWithoutBonding(_ way: Way) throws {
        try LockAndPhone.run { world in
            let (devices, _) = try await Self.setUp(way, in: world, bonds: false)
            let peer = try await devices.connect()
            #expect(try await peer.pair() == way.strength)
            #expect(try await peer.read(devices.handle(LockAndPhone.encrypted)) == [0x2A])
            #expect(devices.phoneEvents.results.map(\.isBonded) == [false])
            #expect(await devices.phone.bonds().isEmpty)
            #expect(await devices.lock.bonds().isEmpty)
            try await devices.disconnect(peer)
            let next = try await devices.connect()
            #expect(await next.security == nil)
        }
    }

    @Test(
        "A refusal or an error of a person leaves neither a bond nor encryption",
        arguments: [
            (Way.all[0], Person.Mood(refusesConsent: true)),
            (Way.all[1], Person.Mood(mistypes: true)),
            (Way.all[2], Person.Mood(mistypes: true)),
            (Way.all[4], Person.Mood(seesAnotherNumber: true)),
            (Way.all[7], Person.Mood(mistypes: true)),
        ] as [(Way, Person.Mood)]
    )
    func refusalOrErrorOfAPersonLeavesNoBond(_ way: Way, _ mood: Person.Mood) throws {
        try LockAndPhone.run { world in
            let (devices, _) = try await Self.setUp(way, in: world, mood: mood)
            let peer = try await devices.connect()
            let error = await #expect(throws: BLEError.self) { try await peer.pair() }
            if case .security = error {} else { Issue.record("\(String(describing: error))") }
            #expect(await peer.security == nil)
            #expect(await devices.phone.bonds().isEmpty)
            #expect(await devices.lock.bonds().isEmpty)
            #expect(devices.phoneEvents.failures.count == 1)
            #expect(await peer.isConnected)
            #expect(await devices.phone.host.inspect().pairings == 0)
        }
    }

    @Test("A question that is not answered for thirty seconds ends the pairing and is withdrawn")
    func unansweredQuestionEndsThePairing() throws {
        try LockAndPhone.run { world in
            let (devices, _) = try await Self.setUp(Way.all[1], in: world, mood: .init(isAway: true))
            let peer = try await devices.connect()
            await #expect(throws: BLEError.security(.pairing(.timedOut))) { try await peer.pair() }
            #expect(await devices.phone.host.inspect().questions == 0)
        }
    }

    @Test("A link that ends during a pairing leaves no trace of it, and reports the reason")
    func linkThatEndsDuringAPairingLeavesNoTraceOfIt() throws {
        try LockAndPhone.run { world in
            let (devices, _) = try await Self.setUp(Way.all[1], in: world, mood: .init(isAway: true))
            let peer = try await devices.connect()
            let pairing = Task(executorPreference: world.taskExecutor) { try await peer.pair() }
            try await world.sleep(for: .seconds(1))
            devices.lockDevice.vanish()
            await #expect(throws: BLEError.disconnected(.controller(.connectionTimeout))) { try await pairing.value }
            #expect(devices.phoneEvents.failures == [.pairing(.linkEnded)])
            #expect(await devices.phone.bonds().isEmpty)
            #expect(await devices.phone.host.inspect().questions == 0)
        }
    }

    @Test("Cancelling a call ends the pairing that it has begun")
    func cancelledCallEndsThePairingThatItBegan() throws {
        try LockAndPhone.run { world in
            let (devices, _) = try await Self.setUp(Way.all[1], in: world, mood: .init(isAway: true))
            let peer = try await devices.connect()
            let task = Task(executorPreference: world.taskExecutor) { try await peer.pair() }
            try await world.sleep(for: .seconds(1))
            task.cancel()
            await #expect(throws: BLEError.cancelled) { try await task.value }
            try await world.sleep(for: .seconds(1))
            #expect(await devices.phone.host.inspect().pairings == 0)
            #expect(await devices.lock.host.inspect().pairings == 0)
        }
    }

    @Test("A client whose request needs security pairs and repeats the request, if the policy says so")
    func clientPairsAndRepeatsTheRequestIfThePolicySaysSo() throws {
        try LockAndPhone.run { world in
            let (devices, _) = try await Self.setUp(Way.all[1], in: world)
            let peer = try await devices.connect()
            #expect(try await peer.read(devices.handle(LockAndPhone.authenticated)) == [0x2A])
            #expect(devices.phoneEvents.results.count == 1)
        }
        try LockAndPhone.run { world in
            let (devices, _) = try await Self.setUp(Way.all[1], in: world)
            var policy = SecurityPolicy()
            policy.securesOnDemand = false
            await devices.phone.setSecurityPolicy(policy)
            let peer = try await devices.connect()
            let handle = try devices.handle(LockAndPhone.encrypted)
            await #expect(throws: BLEError.attribute(.insufficientAuthentication, handle: handle)) {
                try await peer.read(handle)
            }
            #expect(devices.phoneEvents.all.isEmpty)
        }
    }

    @Test("If the server refuses again after pairing, the refusal and its cause are the outcome")
    func refusalAfterPairingIsTheOutcome() throws {
        try LockAndPhone.run { world in
            let (devices, _) = try await Self.setUp(Way.all[0], in: world)
            let peer = try await devices.connect()
            let handle = try devices.handle(LockAndPhone.authenticated)
            await #expect(throws: BLEError.attribute(.insufficientAuthentication, handle: handle)) {
                try await peer.read(handle)
            }
            // Just Works was tried once, and encrypts the link; it is not tried again.
            #expect(devices.phoneEvents.results.count == 1)
            #expect(try await peer.read(devices.handle(LockAndPhone.open)) == [0x2A])
        }
    }

    @Test("A read that needs a secure link reports why the link could not be secured")
    func readReportsWhyTheLinkCouldNotBeSecured() throws {
        try LockAndPhone.run { world in
            let devices = try await LockAndPhone(in: world)
            let peer = try await devices.connect()
            let handle = try devices.handle(LockAndPhone.encrypted)
            await #expect(throws: BLEError.security(.pairing(.endedByPeer(.pairingNotSupported)))) {
                try await peer.read(handle)
            }
        }
    }

    @Test("Without a delegate this device begins pairings by Just Works only")
    func onlyJustWorksBeginsWithoutADelegate() throws {
        try LockAndPhone.run { world in
            let devices = try await LockAndPhone(in: world)
            let peer = try await devices.connect()
            await #expect(throws: BLEError.security(.pairing(.endedByPeer(.pairingNotSupported)))) {
                try await peer.pair()
            }
            #expect(
                devices.lockEvents.failures == [
                    .refused("the peer began it, and there is no pairing delegate to consent")
                ]
            )
        }
        try LockAndPhone.run { world in
            let devices = try await LockAndPhone(in: world, lock: { $0.security.justWorks = .always })
            let peer = try await devices.connect()
            #expect(try await peer.pair().isAuthenticated == false)
        }
        try LockAndPhone.run { world in
            let person = Person(in: world)
            let devices = try await LockAndPhone(
                in: world,
                lock: {
                    $0.security.ioCapability = .displayOnly
                    $0.pairingDelegate = person.hold()
                },
                phone: { $0.security.ioCapability = .keyboardOnly }
            )
            let peer = try await devices.connect()
            await #expect(throws: BLEError.security(.refused("there is no pairing delegate to answer"))) {
                try await peer.pair()
            }
        }
    }
}
