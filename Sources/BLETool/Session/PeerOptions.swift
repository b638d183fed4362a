import ArgumentParser
import BLE
import BLEProfiles
import BluetoothTypes

/// The options of every command that connects to a peer.
struct PeerOptions: ParsableArguments {
    /// Whether an address is public or random.
    enum AddressType: String, ExpressibleByArgument, CaseIterable {
        case `public`
        case random
    }

    @OptionGroup var options: GlobalOptions

    @Argument(
        help: "The peer: its address, its name, or service:UUID for the first that advertises the service.",
        transform: { try Target(argument: $0) }
    )
    var target: Target

    @Option(help: "Connect to an address without looking for it first.")
    var addressType: AddressType?

    @OptionGroup var finding: FindOptions

    @OptionGroup(title: "Pairing") var pairing: PairingOptions

    func validate() throws {
        guard addressType != nil else { return }
        guard case .address = target else { throw ValidationError("--address-type goes with an address only") }
        if finding.coded { throw ValidationError("--coded looks for the device, so it excludes --address-type") }
    }

    /// Connects to the peer for `body`, disconnects whatever happens, and passes the result to `show`.
    ///
    /// - Parameters:
    ///   - encryptsBondedLinks: whether the link to a bonded peer is encrypted first.
    ///   - inputHasData: whether `body` reads standard input, so that no answers are read there.
    ///   - show: prints the result.
    func withPeer<Value: Sendable>(
        encryptsBondedLinks: Bool = true,
        inputHasData: Bool = false,
        _ body: @escaping @Sendable (RemotePeripheral) async throws -> Value,
        show: (Value) async throws -> Void = { _ in }
    ) async throws {
        try await withPeer(.none, encryptsBondedLinks: encryptsBondedLinks, inputHasData: inputHasData) {
            try await body($1)
        } show: {
            try await show($0)
        }
    }

    /// The same, but values that need security cause no pairing unless an option selects how to pair.
    func withPeerAsItIs<Value: Sendable>(
        _ body: @escaping @Sendable (RemotePeripheral) async throws -> Value,
        show: (Value) async throws -> Void
    ) async throws {
        try await withPeer(.none, securesOnDemand: pairing.isGiven) {
            try await body($1)
        } show: {
            try await show($0)
        }
    }

    /// - Parameters:
    ///   - usual: the input and output of this side, unless an option sets them.
    ///   - encryptsBondedLinks: whether the link to a bonded peer is encrypted first.
    ///   - securesOnDemand: whether devices pair when the peer answers that an operation needs it.
    ///   - usesSubrating: whether the connection can be subrated without an option for it.
    ///   - inputHasData: whether `body` reads standard input, so that no answers are read there.
    ///   - show: prints the result, when the adapter is closed.
    func withPeer<Value: Sendable>(
        _ usual: PairingOptions.Capability,
        securesOnDemand: Bool = true,
        encryptsBondedLinks: Bool = true,
        usesSubrating: Bool = false,
        inputHasData: Bool = false,
        _ body: @escaping @Sendable (Adapter, RemotePeripheral) async throws -> Value,
        show: (Value) async throws -> Void = { _ in }
    ) async throws {
        let policy = try await policy(
            usual,
            securesOnDemand: securesOnDemand,
            encryptsBondedLinks: encryptsBondedLinks
        )
        let console = PairingConsole(
            asJSON: options.output.json,
            passkey: pairing.passkey,
            answers: inputHasData ? .nowhere : .lines(StandardInput.lines()),
            consents: consent
        )
        try await options.withAdapter { [policy] in
            $0.security = policy
            $0.pairingDelegate = console
            if usesSubrating { $0.usesSubrating = true }
        } _: { [policy] adapter in
            try await pairing.prepare(adapter, policy, console)
            let address = try await find(with: adapter.central)
            let peer = try await adapter.central.connect(to: address, timeout: options.patience.duration)
            do {
                let value = try await body(adapter, peer)
                await uncancelled { await peer.disconnect() }
                return value
            } catch {
                await uncancelled { await peer.disconnect() }
                throw error
            }
        } show: {
            try await show($0)
        }
    }

    /// The security that the command requires of the peer.
    ///
    /// A command that pairs when the peer demands it also follows the peer's Security Request. A command that pairs for
    /// nothing refuses the request with Pairing Not Supported (0x05), and begins no pairing that its consent would
    /// refuse.
    func policy(
        _ usual: PairingOptions.Capability,
        securesOnDemand: Bool,
        encryptsBondedLinks: Bool
    ) async throws -> SecurityPolicy {
        var policy = try await pairing.policy(usual)
        policy.securesOnDemand = securesOnDemand && !pairing.noPair
        policy.pairsOnRequest = policy.securesOnDemand
        policy.encryptsBondedLinks = encryptsBondedLinks
        return policy
    }

    /// The policy decides which pairings begin. A bond is replaced only if an option requests it.
    var consent: PairingConsole.Consent {
        { [replaces = pairing.replaceBond, mayPair = !pairing.noPair] in
            mayPair && ($0.replaces == nil || $0.isIdentityVerified || replaces)
        }
    }

    /// The peer's address, from the command line or from the air.
    private func find(with central: Central) async throws -> DeviceAddress {
        if case .address(let value) = target, let addressType {
            return DeviceAddress(value, isRandom: addressType == .random)
        }
        return try await target.findConnectable(with: central, within: options.patience, finding)
    }
}
