/// How a transport is to behave, where that can be chosen.
public struct TransportOptions: Sendable {
    /// How long the other end of a stream may take to answer, name resolution included.
    public var connectTimeout: Duration
    /// How many octets may wait to be written before the controller is given up (``TransportError/overflow``).
    public var backlogLimit: Int
    /// Brings a kernel adapter down before its user channel is bound, where it is up. What the kernel's own stack does with
    /// it ends then.
    public var bringsAdapterDown: Bool
    /// What may wait to be written on this transport and others together, beside ``backlogLimit``.
    package var sharedBacklog: BacklogBudget?

    public init(
        connectTimeout: Duration = .seconds(5),
        backlogLimit: Int = 4 << 20,
        bringsAdapterDown: Bool = false
    ) {
        self.connectTimeout = connectTimeout
        self.backlogLimit = backlogLimit
        self.bringsAdapterDown = bringsAdapterDown
    }
}
