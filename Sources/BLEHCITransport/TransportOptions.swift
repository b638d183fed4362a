/// Returns whether the opening of a transport was cancelled. The opening calls it on any thread before each step that
/// uses the controller, and fails if it was. It does not interrupt a step in progress.
package typealias CancellationCheck = @Sendable () -> Bool

/// Options for the behavior of a transport.
public struct TransportOptions: Sendable {
    /// The time for connecting a stream, name resolution included.
    public var connectTimeout: Duration
    /// Maximum number of bytes that wait to be written. Beyond it, the transport ends with ``TransportError/overflow``.
    public var backlogByteLimit: Int
    /// Whether a kernel adapter is brought down before its user channel is bound. This ends its use by the kernel's own
    /// stack.
    public var bringsAdapterDown: Bool
    /// How late advertising reports may be read, so that several are read together: 0 to 50 ms, in whole milliseconds.
    ///
    /// To wake up for each report costs several times as much as to handle it. Reads wait for a shorter time if more
    /// than 64 packets would be read together, and only when no other packet was sent or received for a second. The
    /// first other packet from the controller may then be as late.
    public var advertisingReportDelay: Duration {
        didSet { setPacing() }
    }
    /// A limit for the bytes that wait on this transport and others together, in addition to ``backlogByteLimit``.
    package var sharedBacklog: BacklogBudget?
    /// Whether the opening of the transport was cancelled.
    package var isCancelled: CancellationCheck = { false }
    /// How reads of advertising reports wait; nil if they do not.
    package var pacing: AdvertisingReportPacing?

    /// Creates options. By default, connecting takes at most 5 s, the backlog is at most 4 MiB, and reports
    /// are read at once.
    public init(
        connectTimeout: Duration = .seconds(5),
        backlogByteLimit: Int = 4 << 20,
        bringsAdapterDown: Bool = false,
        advertisingReportDelay: Duration = .zero
    ) {
        self.connectTimeout = connectTimeout
        self.backlogByteLimit = backlogByteLimit
        self.bringsAdapterDown = bringsAdapterDown
        self.advertisingReportDelay = advertisingReportDelay
        setPacing()
    }

    private mutating func setPacing() {
        pacing = AdvertisingReportPacing(delay: min(advertisingReportDelay, AdvertisingReportPacing.longestDelay))
    }
}
