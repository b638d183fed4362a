import BluetoothHost

extension RemotePeripheral {
    /// The strength of the link's key; nil if the link is not encrypted.
    public var security: KeyStrength? {
        get async {
            guard let link = try? usableLink else { return nil }
            return await host.strength(of: link)
        }
    }

    /// Whether the link is encrypted.
    public var isEncrypted: Bool {
        get async { await security != nil }
    }

    /// Secures the link as required: with the key of the bond if that is enough, otherwise by pairing.
    ///
    /// This call is not needed to read or write a value that needs security if
    /// ``/BluetoothHost/SecurityPolicy/securesOnDemand`` is set.
    ///
    /// - Parameters:
    ///   - required: the strength that the key must have.
    ///   - again: whether to pair even if the devices are bonded. The new bond is at least as strong as the one that it
    ///     replaces. If no bond resolves the peer's private address, the peer may be a bonded device that was reset.
    ///     If ``/BluetoothHost/SecurityPolicy/bondReplacement`` is `whenConsented`, the new bond then replaces the one
    ///     with the identity that the peer gives, unless that device is connected. A pairing delegate is asked first.
    ///     Any device can give that identity, so set this only if a person wants to pair.
    ///   - policy: for this link, in place of the adapter's.
    /// - Returns: the strength of the key.
    /// - Throws: ``BLEError/security(_:)``; with ``/BluetoothHost/SecurityError/keyMissing`` if the peer does not have
    ///   the bond's key.
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

    /// Allows the peer, as a client of this host's server, to use attributes that need authorization, or withdraws
    /// that.
    ///
    /// - Throws: ``BLEError/disconnected(_:)`` if the link has ended, or ``disconnect()`` was called.
    public func setAuthorized(_ isAuthorized: Bool) async throws(BLEError) {
        let link = try usableLink
        try await translating { () throws(HostError) in try await host.setAuthorized(isAuthorized, on: link) }
    }
}
