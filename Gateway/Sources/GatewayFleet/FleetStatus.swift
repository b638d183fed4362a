/// What a consumer of a fleet's messages has done, and what it holds.
public struct FleetStatus: Sendable {
    /// What became of messages.
    public var messages = FleetWindow.Counters()
    /// Messages that could not be decoded.
    public var malformedCount: UInt64 = 0
    /// Windows that are open.
    public var openWindowCount = 0
    /// Tags that gateways received in the last minutes.
    public var tagCount = 0
    /// Receptions of tags or gateways beyond the limits of the election.
    public var electionRefusedCount: UInt64 = 0
    /// Gateways that are known.
    public var gatewayCount = 0
    /// Gateways from which no message has come for ``FleetConsumer/silence``.
    public var silentGatewayCount = 0
    /// Gateways that have said, or of which the broker has said, that they are offline.
    public var offlineGatewayCount = 0
    /// Whether the broker is connected.
    public var isConnected = false
    /// Times that the broker was connected.
    public var connectCount: UInt64 = 0
    /// Lines that are not written, or not confirmed by the broker.
    public var waitingLineCount = 0
    /// Lines that were written.
    public var lineCount: UInt64 = 0
    /// Messages whose observations are not written.
    public var waitingMessageCount = 0
    /// Why messages cannot be stored now; nil if they can.
    public var storeFailure: String?
    /// Why lines cannot be written now; nil if they can.
    public var outputFailure: String?

    /// Creates the status of a consumer that has done nothing.
    public init() {}
}
