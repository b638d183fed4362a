/// Options for the behavior of a transport.
public struct TransportOptions: Sendable {
    /// The time for connecting a stream, name resolution included.
    public var connectTimeout: Duration
    /// Maximum number of bytes that wait to be written. Beyond it, the transport ends with ``TransportError/overflow``.
    public var backlogByteLimit: Int
    /// Whether a kernel adapter is brought down before its user channel is bound. This ends its use by the kernel's own
    /// stack.
    public var bringsAdapterDown: Bool
    /// A limit for the bytes that wait on this transport and others together, in addition to ``backlogByteLimit``.
    package var sharedBacklog: BacklogBudget?

    /// Creates options. By default, connecting takes at most 5 s and the backlog at most 4 MiB.
    public init(
        connectTimeout: Duration = .seconds(5),
        backlogByteLimit: Int = 4 << 20,
        bringsAdapterDown: Bool = false
    ) {
        self.connectTimeout = connectTimeout
        self.backlogByteLimit = backlogByteLimit
        self.bringsAdapterDown = bringsAdapterDown
    }
}
