/// How well radio packets get from one controller to another.
///
/// Where an air and a link both have conditions, the link's stand in for the air's.
public struct RadioConditions: Hashable, Sendable {
    /// How likely it is that one packet on the air is lost, 0 to 1. The Link Layer sends lost packets again; a link ends
    /// when nothing came through for its supervision timeout.
    public var loss: Double
    /// What is added to the time that a packet takes from the one controller's radio to the other's host.
    public var latency: Duration
    /// Up to this much, at random, is added to ``latency``. Packets of one link stay in order.
    public var jitter: Duration
    /// Nothing comes through at all.
    public var isDead: Bool

    public init(loss: Double = 0, latency: Duration = .zero, jitter: Duration = .zero, isDead: Bool = false) {
        self.loss = loss
        self.latency = latency
        self.jitter = jitter
        self.isDead = isDead
    }

    /// All arrives at once.
    public static let perfect = RadioConditions()
}

/// What is wrong with a controller, as its host sees it. All probabilities are 0 to 1, for each packet by itself.
public struct ControllerFaults: Hashable, Sendable {
    /// The controller takes what its host sends and answers nothing, nor tells it anything.
    public var isSilent: Bool
    /// How likely it is that a Command Complete, Command Status or Number Of Completed Packets event is lost.
    public var completionLoss: Double
    /// How long those events come late.
    public var completionDelay: Duration
    /// How likely it is that an event of random bytes goes before an event.
    public var garbage: Double
    /// How likely it is that an event's parameters are cut short; its header says so, so that packets stay apart.
    public var truncation: Double
    /// How likely it is that the buffer of an ACL packet is not given back as long as its link lasts.
    public var bufferLoss: Double
    /// The controller does not answer LE Ping, as an attacker cannot that has taken over a link without its key.
    public var ignoresPings: Bool

    public init(
        isSilent: Bool = false,
        completionLoss: Double = 0,
        completionDelay: Duration = .zero,
        garbage: Double = 0,
        truncation: Double = 0,
        bufferLoss: Double = 0,
        ignoresPings: Bool = false
    ) {
        self.isSilent = isSilent
        self.completionLoss = completionLoss
        self.completionDelay = completionDelay
        self.garbage = garbage
        self.truncation = truncation
        self.bufferLoss = bufferLoss
        self.ignoresPings = ignoresPings
    }

    /// Nothing is wrong.
    public static let none = ControllerFaults()
}
