import ArgumentParser
import BLE
import BLEProfiles

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

    func run() async throws {
        let readsKey = advertisingKey
        let isAgain = peer.pairing.replaceBond
        let required = RequiredSecurity(
            isAuthenticated: peer.pairing.authenticated,
            isSecureConnections: peer.pairing.scOnly
        )
        let usual: PairingOptions.Capability = Terminal.isPresent && StandardInput.isTerminal ? .keyboardDisplay : .none
        // If the devices are to pair again, the old bond's key is not used first.
        let (address, strength, events, store) = try await peer.withPeer(usual, encryptsBondedLinks: !isAgain) {
            adapter,
            peer in
            let events = await adapter.securityEvents()
            let strength = try await peer.pair(required, again: isAgain)
            if readsKey { _ = try await peer.readEncryptedDataKeyMaterial() }
            return (peer.address, strength, events, adapter.store)
        }
        // The adapter is closed, so that the events have an end.
        var paired: PairingResult?
        for await event in events {
            if case .paired(_, let result) = event { paired = result }
        }
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
        if let path = store.path, store.hasUnsavedChanges { throw ToolError.bondNotSaved("\(address)", path) }
    }
}
