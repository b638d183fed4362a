/// The radio conditions between controllers.
///
/// Conditions between two controllers replace those of the air.
public struct RadioConditions: Hashable, Sendable {
    /// The probability that one packet on the air is lost, 0 to 1. The Link Layer repeats lost packets. A link ends if
    /// no packet gets through for its supervision timeout.
    public var loss: Double
    /// A delay added to the time of a packet from one controller's radio to the other's host.
    public var latency: Duration
    /// Maximum random delay added to ``latency``. Packets of one link stay in order, and so do those of one periodic
    /// train and the advertisements of one device.
    public var jitter: Duration
    /// Whether all packets are lost.
    public var isDead: Bool

    /// Creates conditions. By default, they are perfect.
    public init(loss: Double = 0, latency: Duration = .zero, jitter: Duration = .zero, isDead: Bool = false) {
        self.loss = loss
        self.latency = latency
        self.jitter = jitter
        self.isDead = isDead
    }

    /// Every packet arrives at once.
    public static let perfect = RadioConditions()
}

/// The faults of a controller, as its host observes them. All probabilities are 0 to 1, and apply to each packet
/// separately.
public struct ControllerFaults: Hashable, Sendable {
    /// Whether the controller accepts packets from its host but sends it none.
    public var isSilent: Bool
    /// The probability that a Command Complete, Command Status or Number Of Completed Packets event is lost.
    public var completionLoss: Double
    /// The delay of these events.
    public var completionDelay: Duration
    /// The probability that an event of random bytes precedes an event.
    public var garbage: Double
    /// The probability that an event's parameters are truncated. Its header has the new length, so packet framing is
    /// kept.
    public var truncation: Double
    /// The probability that the buffer of an ACL packet is not returned before its link ends.
    public var bufferLoss: Double
    /// The probability that a command other than Reset is refused: answered with Command Disallowed, without effect.
    public var refusal: Double
    /// Whether the controller ignores LE Ping, like an attacker that has taken over a link without its key.
    public var ignoresPings: Bool

    /// Creates faults. By default, there are none.
    public init(
        isSilent: Bool = false,
        completionLoss: Double = 0,
        completionDelay: Duration = .zero,
        garbage: Double = 0,
        truncation: Double = 0,
        bufferLoss: Double = 0,
        refusal: Double = 0,
        ignoresPings: Bool = false
    ) {
        self.isSilent = isSilent
        self.completionLoss = completionLoss
        self.completionDelay = completionDelay
        self.garbage = garbage
        self.truncation = truncation
        self.bufferLoss = bufferLoss
        self.refusal = refusal
        self.ignoresPings = ignoresPings
    }

    /// No faults.
    public static let none = ControllerFaults()
}
