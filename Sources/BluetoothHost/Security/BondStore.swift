import BluetoothTypes

/// Keeps what outlives a host. A host loads it once and reports each change.
package protocol BondStore: Sendable {
    /// What was kept by the host on the controller with this public address, or on the one without that the store was made
    /// for.
    nonisolated(nonsending) func load(for publicAddress: DeviceAddress?) async -> KeptSecurity

    /// The reason why the saved state could not be loaded whole, or why changes cannot be saved; nil where both succeed.
    /// Valid once ``load(for:)`` has returned.
    var problem: String? { get }

    /// Keeps the whole state as it is now. `whenKept` is called, from anywhere, once it will outlive the process, or with
    /// false where it cannot be kept.
    func keep(_ security: KeptSecurity, whenKept: (@Sendable (Bool) -> Void)?)

    /// Keeps the whole state as it is now, for changes that a peer can cause again and again. The store writes the first
    /// change at once and may gather later ones for some seconds; ``keep(_:whenKept:)`` writes them too.
    func gather(_ security: KeptSecurity)
}

extension BondStore {
    package var problem: String? { nil }

    package func gather(_ security: KeptSecurity) { keep(security, whenKept: nil) }
}
