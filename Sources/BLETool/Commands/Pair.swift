import ArgumentParser
import BLE
import BLEKeyStore
import BLEProfiles
import BluetoothTypes

struct Pair: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pair",
        abstract: "Connect to a peer and pair with it.",
        discussion: """
            If the peer is bonded already, the link is only encrypted with the key of the bond. With --replace-bond \
            the devices pair again. Questions are answered on standard input: six digits for a passkey, yes or no for \
            a comparison. Out of band data are files in JSON: {"confirm": ..., "random": ...} for LE Secure \
            Connections, {"temporaryKey": ...} for LE legacy pairing, 32 hexadecimal digits each.
            """
    )

    @OptionGroup var peer: PeerOptions

    @Flag(help: "Read the key of the peer's encrypted advertising data, and save it with the bond for `ble scan`.")
    var advertisingKey = false

    /// The result of pairing with a peer.
    struct Outcome: Sendable {
        let address: DeviceAddress
        let strength: KeyStrength
        /// The events since the connection. They end when the adapter is closed.
        let events: Events<SecurityEvent>
        let store: KeyStore
        /// The reason why the key of the advertising data was not read. The pairing is saved nevertheless.
        let keyProblem: (any Error)?
    }

    func run() async throws {
        let command = self
        let usual: PairingOptions.Capability = Terminal.isPresent && StandardInput.isTerminal ? .keyboardDisplay : .none
        // If the devices are to pair again, the old bond's key is not used first.
        try await peer.withPeer(usual, encryptsBondedLinks: !peer.pairing.replaceBond) { adapter, peer in
            try await command.pair(with: peer, on: adapter)
        } show: { (outcome: Outcome) in
            try await show(outcome)
        }
    }

    /// Pairs, and reads the key of the advertising data if the option requests it.
    func pair(with device: RemotePeripheral, on adapter: Adapter) async throws -> Outcome {
        let required = RequiredSecurity(
            isAuthenticated: peer.pairing.authenticated,
            isSecureConnections: peer.pairing.scOnly
        )
        let events = await adapter.securityEvents()
        let strength = try await device.pair(required, again: peer.pairing.replaceBond)
        var keyProblem: (any Error)?
        if advertisingKey {
            do throws(BLEError) {
                _ = try await device.readEncryptedDataKeyMaterial()
            } catch {
                keyProblem = error
            }
        }
        return Outcome(
            address: device.address,
            strength: strength,
            events: events,
            store: adapter.store,
            keyProblem: keyProblem
        )
    }

    /// Prints the pairing.
    ///
    /// - Throws: afterwards, the reason why the bond was not saved or the key was not read.
    private func show(_ outcome: Outcome) async throws {
        var paired: PairingResult?
        for await event in outcome.events {
            if case .paired(_, let result) = event { paired = result }
        }
        let (address, strength) = (outcome.address, outcome.strength)
        if peer.options.output.json {
            try Output.standard.json(
                .object(
                    [.event(paired == nil ? "encrypted" : "paired")] + .peer(address)
                        + (paired?.members ?? strength.members)
                )
            )
        } else {
            try Output.standard.line(
                paired?.words ?? "\(address): encrypted with the bond's key, \(strength.words)"
            )
        }
        // The warnings have given the reason.
        if let path = outcome.store.path, outcome.store.hasUnsavedChanges {
            throw ToolError.bondNotSaved("\(address)", path)
        }
        if let keyProblem = outcome.keyProblem { throw keyProblem }
    }
}
