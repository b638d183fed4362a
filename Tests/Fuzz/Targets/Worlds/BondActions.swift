import BLE
import BLEGATT
import BLEHCI
import BLEL2CAP
import BLESMP
import BluetoothHost
import BluetoothTesting
import BluetoothTypes

/// The actions of a fuzzed pair of hosts and of a controller, concerning security.
struct BondActions {
    let world: World
    /// The two hosts; only the first one's controller is fuzzed.
    private(set) var sides: [BondSide] = []
    private let writes: WrittenValues
    private var calls: ConcurrentCalls

    init(world: World, writes: WrittenValues) async throws {
        self.world = world
        self.writes = writes
        calls = ConcurrentCalls(world: world)
        let delegate = PasskeyDelegate(world: world, display: PasskeyDelegate.Display())
        for name in ["first", "second"] {
            sides.append(try await BondSide(name, in: world, writes: writes, delegate: delegate))
        }
        try await connectAndPair(from: 0)
    }

    mutating func end() async {
        await calls.end()
        for side in sides {
            // What ended calls have left behind is cleaned up on the loop.
            try? await world.sleep(for: .milliseconds(1))
            let held = await side.adapter.host.inspect()
            require(held.calls == 0, "\(held.calls) calls without a caller")
            await closeCompletely(side.adapter)
        }
    }

    mutating func perform(_ packet: Script.Packet) async {
        let index = Int(packet.choice >> 4 & 1)
        var choices = Choices(packet.octets)
        switch packet.choice & 15 {
        case 0: sides[0].device.inject(packet.octets.rawSpan)
        case 1, 2: await sendUnchecked(from: index, &choices)
        case 3: await setPolicy(of: index, &choices)
        case 4: await exchangeOutOfBandData(from: index, &choices)
        case 5, 6: secure(from: index, &choices)
        case 7, 8: writeSigned(from: index)
        case 9: useProtectedValue(from: index, &choices)
        case 10: await endLinks(of: index)
        case 11 where choices.next() & 1 != 0: try? await connectAndPair(from: index)
        case 11: _ = try? await connect(from: index)
        case 12: await removeBonds(of: index)
        case 13: await changeWindow(of: index, choices.next())
        case 14: await restart(index, &choices)
        default: changeController(of: index, choices.next())
        }
    }

    // MARK: Links

    private func connectAndPair(from index: Int) async throws {
        try await connect(from: index).pair()
    }

    private func connect(from index: Int) async throws -> RemotePeripheral {
        let address = try await sides[1 - index].adapter.information.identityAddress
        return try await sides[index].adapter.central.connect(to: address, timeout: .seconds(2))
    }

    private func endLinks(of index: Int) async {
        let host = sides[index].adapter.host
        for link in await host.linkIdentifiers() { await host.beginDisconnecting(link) }
    }

    private func link(of index: Int) async -> LinkIdentifier? {
        await sides[index].adapter.host.linkIdentifiers().first
    }

    private func sendUnchecked(from index: Int, _ choices: inout Choices) async {
        guard let link = await link(of: index) else { return }
        let channels: [ChannelIdentifier] = [.attribute, .signaling, .securityManager]
        let channel = channels[Int(choices.next(below: 3))]
        await sides[index].adapter.host.sendUnchecked(choices.remaining(), on: channel, of: link)
    }

    private func changeController(of index: Int, _ number: UInt8) {
        let device = sides[index].device
        switch number & 7 {
        case 0: device.vanish()
        case 1: device.failWithHardwareError()
        case 2: device.faults = ControllerFaults(ignoresPings: true)
        case 3: device.faults = .none
        case 4: world.conditions = RadioConditions(isDead: true)
        case 5: world.conditions = .perfect
        default: device.comeBack()
        }
    }

    // MARK: Policies

    private func policy(_ choices: inout Choices) -> SecurityPolicy {
        var policy = SecurityPolicy()
        policy.ioCapability = IOCapability(rawValue: choices.next(below: 5)) ?? .noInputNoOutput
        let flags = choices.next()
        policy.bonds = flags & 1 == 0
        policy.requiresAuthentication = flags & 2 != 0
        policy.offersSecureConnections = flags & 4 == 0
        policy.requiresSecureConnections = flags & 12 == 8
        policy.encryptsBondedLinks = flags & 16 != 0
        policy.requestsEncryption = flags & 32 != 0
        policy.securesOnDemand = flags & 64 != 0
        policy.servesUnverifiedClients = flags & 128 != 0
        let other = choices.next()
        policy.justWorks = [.always, .whenStartedHere, .never, .always][Int(other & 3)]
        policy.pairable = [.always, .duringWindow, .never, .always][Int(other >> 2 & 3)]
        policy.bondReplacement = [.whenConsented, .whenIdentityVerified, .never, .whenConsented][Int(other >> 4 & 3)]
        policy.keyLoss = other & 64 == 0 ? .askToPairAgain : .fail
        policy.usesKeypressNotifications = other & 128 != 0
        policy.minimumKeySizeInBytes = 7 + choices.next(below: 10)
        let timeout = choices.next()
        if timeout != 0 { policy.authenticatedPayloadTimeout = .milliseconds(100 * Int(timeout)) }
        policy.delaysJustWorksConsent = choices.next() & 1 != 0
        return policy
    }

    private func setPolicy(of index: Int, _ choices: inout Choices) async {
        await sides[index].adapter.setSecurityPolicy(policy(&choices))
    }

    /// Makes out-of-band data on one side, and gives it to the other, or to both by turns. It may arrive damaged.
    private func exchangeOutOfBandData(from index: Int, _ choices: inout Choices) async {
        let flags = choices.next()
        let isSecureConnections = flags & 1 == 0
        var policies = [policy(&choices), policy(&choices)]
        for (maker, taker) in [(index, 1 - index), (1 - index, index)] where flags & 2 != 0 || maker == index {
            let data = await sides[maker].adapter.makeOutOfBandData(isSecureConnections: isSecureConnections)
            policies[maker].ownOutOfBandData = data.secret
            policies[taker].peerOutOfBandData = data.forPeer
            if flags & 12 == 12, case .secureConnections(let confirm, let random) = data.forPeer {
                policies[taker].peerOutOfBandData = .secureConnections(confirm: confirm ^ 1, random: random)
            }
        }
        for (side, policy) in zip(sides, policies) { await side.adapter.setSecurityPolicy(policy) }
    }

    private func changeWindow(of index: Int, _ number: UInt8) async {
        let adapter = sides[index].adapter
        let client = await link(of: index)
        switch number & 7 {
        case 0: await adapter.openPairingWindow(for: .seconds(Int(number)))
        case 1: await adapter.closePairingWindow()
        case 2: await adapter.peripheral.setAuthorizer { _, _ in number & 8 == 0 }
        case 3: await adapter.peripheral.setAuthorizer(nil)
        case 4: if let client { try? await adapter.peripheral.setAuthorized(number & 8 == 0, client) }
        case 5: await adapter.setPairingDelegate(nil)
        case 6: await adapter.setPairingDelegate(Consent())
        default:
            if let client { _ = await adapter.host.reportKeypress(.digitEntered, on: client) }
        }
    }

    // MARK: Calls

    private mutating func secure(from index: Int, _ choices: inout Choices) {
        let flags = choices.next()
        let required = RequiredSecurity(
            isAuthenticated: flags & 1 != 0,
            isSecureConnections: flags & 2 != 0,
            keySizeInBytes: flags & 4 == 0 ? 7 : 16
        )
        let policy: SecurityPolicy? = flags & 16 != 0 ? policy(&choices) : nil
        calls.begin { [host = sides[index].adapter.host] in
            guard let link = await host.linkIdentifiers().first else { return }
            let isAgain = flags & 8 != 0
            let strength = try? await host.secure(link, required, pairsAgain: isAgain, policy: policy)
            guard let strength else { return }
            require(strength.isAuthenticated || !required.isAuthenticated, "a key that is not authenticated")
            require(strength.isSecureConnections || !required.isSecureConnections, "a key of legacy pairing")
            require(strength.keySize >= required.keySizeInBytes, "a key of \(strength.keySize) bytes")
        }
    }

    private mutating func writeSigned(from index: Int) {
        let value = writes.next()
        let handle = sides[1 - index].signed
        calls.begin { [host = sides[index].adapter.host] in
            guard let link = await host.linkIdentifiers().first else { return }
            try? await host.writeSigned(value, to: handle, on: link)
        }
    }

    private mutating func useProtectedValue(from index: Int, _ choices: inout Choices) {
        let flags = choices.next()
        let handle = sides[1 - index].protected
        calls.begin { [central = sides[index].adapter.central, other = sides[1 - index].adapter] in
            guard let address = try? await other.information.identityAddress,
                let peer = try? await central.connect(to: address, timeout: .seconds(1))
            else { return }
            if flags & 1 == 0 { _ = try? await peer.read(handle) }
            if flags & 2 != 0 { try? await peer.write([3], to: handle) }
        }
    }

    private func removeBonds(of index: Int) async {
        for bond in await sides[index].adapter.bonds() { await sides[index].adapter.removeBond(bond.identity) }
    }

    private mutating func restart(_ index: Int, _ choices: inout Choices) async {
        let flags = choices.next()
        let identity = DeviceAddress(0xC000_0000_2000 | UInt64(flags & 3), isRandom: true)
        await sides[index].restart(isPrivate: flags & 4 != 0, identity: flags & 8 == 0 ? nil : identity)
    }
}
