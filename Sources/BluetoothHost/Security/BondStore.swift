import BluetoothTypes

/// A store of the state that outlives a host. The host loads the state once, and then reports each change.
package protocol BondStore: Sendable {
    /// Loads the saved state of the host.
    ///
    /// - Parameter publicAddress: the controller's public address; nil if it has none. The store then uses the name
    ///   that it was created with.
    nonisolated(nonsending) func load(for publicAddress: DeviceAddress?) async -> HostSecurityState

    /// The reason why the saved state could not be loaded completely, or why changes cannot be saved; nil if there is
    /// no problem. Valid after ``load(for:)`` has returned.
    var problem: String? { get }

    /// Saves the whole state.
    ///
    /// - Parameter completion: called once, on any thread: with true when the state outlives the process, with false if
    ///   it cannot be saved.
    func save(_ security: HostSecurityState, completion: (@Sendable (Bool) -> Void)?)

    /// Saves the whole state, after a change that a peer can cause again and again. The store writes the first such
    /// change at once. It may write later ones together some seconds later. ``save(_:completion:)`` writes them too.
    func saveSoon(_ security: HostSecurityState)
}

extension BondStore {
    package var problem: String? { nil }

    package func saveSoon(_ security: HostSecurityState) { save(security, completion: nil) }
}
