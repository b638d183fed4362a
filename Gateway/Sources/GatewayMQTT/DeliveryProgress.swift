/// Notices that the broker refuses a message, or that it confirms none.
///
/// ## Refusals
///
/// Some brokers end the connection when they receive a message that is too long, or whose topic is not allowed. After
/// ``fruitlessConnectionLimit`` connections that ended before a message was confirmed, one message is sent at a time.
/// If the next connection ends while only that one is not confirmed, the broker refuses it. A connection that ends
/// later than ``refusalTime`` has another reason: the network is lost, or the broker hangs.
///
/// ## Silence
///
/// A connection on which nothing is confirmed for ``confirmationTimeout`` is to be ended. That is no refusal: the
/// storage of the broker may have failed.
struct DeliveryProgress {
    /// The number of connections without a confirmation after which messages are sent one at a time.
    static let fruitlessConnectionLimit = 3
    /// The longest time without a confirmation while messages are not confirmed.
    static let confirmationTimeout = Duration.seconds(60)

    /// The time after a message in which a broker that refuses it ends the connection.
    static let refusalTime = Duration.seconds(10)

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
    ///
    /// - Parameter start: since when the broker has not confirmed something else that messages wait for; nil if there
    ///   is nothing.
    mutating func checkStalled(at now: Duration, waitingSince start: Duration? = nil) -> Bool {
        guard !isStalled, let start = lastProgress ?? start, now - start >= Self.confirmationTimeout else {
            return false
        }
        isStalled = true
        return true
    }

    /// Takes that the connection was lost.
    ///
    /// - Parameter isForOtherReason: whether it was lost for another reason than a message.
    /// - Returns: whether the broker refuses the message that was not confirmed.
    mutating func connectionLost(at now: Duration, isForOtherReason: Bool = false) -> Bool {
        let isFruitless = !isForOtherReason && !isStalled && lastProgress.map { now - $0 < Self.refusalTime } ?? false
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
