/// Notices that the broker refuses a message, or that it confirms none.
///
/// ## Refusals
///
/// Some brokers end the connection when they receive a message that is too long, or whose topic is not allowed. After
/// ``fruitlessConnectionLimit`` connections that ended before a message was confirmed, one message is sent at a time. If
/// the next connection ends while only that one is not confirmed, the broker refuses it.
///
/// ## Silence
///
/// A connection on which nothing is confirmed for ``confirmationTimeout`` is to be ended. That is no refusal: the storage of
/// the broker may have failed.
struct DeliveryProgress {
    /// The number of connections without a confirmation after which messages are sent one at a time.
    static let fruitlessConnectionLimit = 3
    /// The longest time without a confirmation while messages are not confirmed.
    static let confirmationTimeout = Duration.seconds(60)

    private var fruitlessConnectionCount = 0
    /// The time of the last confirmation, or of the first message after it; nil if all messages are confirmed.
    private var lastProgress: Duration?
    /// Whether the gateway ends the connection.
    private var isStalled = false

    /// Whether a message is sent only when the broker has confirmed everything before it.
    var sendsOneAtATime: Bool { fruitlessConnectionCount >= Self.fruitlessConnectionLimit }

    /// Takes that messages were sent or confirmed.
    ///
    /// - Parameters:
    ///   - isConfirmed: whether the broker has confirmed all messages.
    ///   - now: the time, since any moment.
    mutating func update(isConfirmed: Bool, at now: Duration) {
        lastProgress = isConfirmed ? nil : lastProgress ?? now
    }

    /// Takes that the broker has confirmed a message.
    mutating func confirm() {
        fruitlessConnectionCount = 0
        lastProgress = nil
    }

    /// Whether the connection is to be ended, because the broker confirms nothing. It is true once for each connection.
    mutating func checkStalled(at now: Duration) -> Bool {
        guard !isStalled, let lastProgress, now - lastProgress >= Self.confirmationTimeout else { return false }
        isStalled = true
        return true
    }

    /// Takes that the connection was lost.
    ///
    /// - Returns: whether the broker refuses the message that was not confirmed.
    mutating func connectionLost() -> Bool {
        let isFruitless = lastProgress != nil && !isStalled
        lastProgress = nil
        isStalled = false
        guard isFruitless else { return false }
        guard sendsOneAtATime else {
            fruitlessConnectionCount += 1
            return false
        }
        fruitlessConnectionCount = 0
        return true
    }
}
