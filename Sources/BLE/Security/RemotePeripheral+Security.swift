import BluetoothHost

extension RemotePeripheral {
    /// What the link's key is worth; nil where the link is not encrypted.
    public var security: KeyStrength? {
        get async {
            guard let link = try? usableLink else { return nil }
            return await host.strength(of: link)
        }
    }

    public var isEncrypted: Bool {
        get async { await security != nil }
    }

    /// Makes the link as secure as is required: with the key of the bond where that is enough, else by pairing.
    ///
    /// A value that needs security is read or written without it too, where ``SecurityPolicy/securesOnDemand`` is set.
    ///
    /// - Parameters:
    ///   - required: what the key must be worth.
    ///   - again: whether to pair though the devices are bonded. The bond is replaced by one that is worth as much at least.
    ///   - policy: for this link, in place of the adapter's.
    /// - Returns: what the key is worth.
    /// - Throws: ``BLEError/security(_:)``; with ``SecurityError/keyMissing`` where the peer does not have the bond's
    ///   key.
    @discardableResult
    public func pair(
        _ required: RequiredSecurity = .encryption,
        again: Bool = false,
        policy: SecurityPolicy? = nil
    ) async throws(BLEError) -> KeyStrength {
        let link = try usableLink
        return try await translating("pairing with \(address)") { () throws(HostError) in
            try await host.secure(link, required, pairsAgain: again, policy: policy)
        }
    }

    /// Lets the peer, as a client of ours, use what needs authorization, or not any more.
    public func setAuthorized(_ isAuthorized: Bool) async throws(BLEError) {
        let link = try usableLink
        try await translating { () throws(HostError) in try await host.setAuthorized(isAuthorized, on: link) }
    }
}
