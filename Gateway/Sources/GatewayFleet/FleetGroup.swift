/// A tag, with the format of its advertisement.
struct TagKey: Hashable {
    let address: UInt64
    let format: String

    init(_ message: FleetMessage) {
        address = message.address
        format = message.format
    }
}

/// The content of a transmission. The hash of the readings has a key of the process, so nobody can make two of the
/// same.
struct ContentKey: Hashable {
    let address: UInt64
    let counter: UInt64?
    let hash: Int

    init(_ message: FleetMessage) {
        address = message.address
        counter = message.counter
        var hasher = Hasher()
        // The bytes: hashes of strings are those of their canonical forms, which takes longer.
        var format = message.format
        var readings = message.readings
        format.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(UInt8(0))
        readings.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hash = hasher.finalize()
    }
}

/// The messages of one transmission.
struct Group: Sendable {
    struct Receiver: Equatable {
        let gateway: Int
        let rssi: Int?
        let time: String
        let number: FleetMessage.Number?
    }

    let content: ContentKey
    let tag: TagKey
    /// The begin of the window.
    let start: Duration
    /// The end of the window, once it has ended.
    private(set) var end: Duration
    private(set) var isOpen = true
    private(set) var readings: String
    private var time: String
    private(set) var receivers: [Receiver]
    private var tokens: [UInt64]
    /// The gateways whose messages came, also late.
    var gateways: [Int]

    init(_ message: FleetMessage, _ content: ContentKey, _ receiver: Receiver, _ token: UInt64, _ now: Duration) {
        self.content = content
        tag = TagKey(message)
        start = now
        end = now
        readings = message.readings
        time = message.time
        receivers = [receiver]
        tokens = [token]
        gateways = [receiver.gateway]
    }

    /// Adds a message. If there are too many, the weakest is dropped.
    ///
    /// - Returns: false if one was dropped.
    mutating func join(_ receiver: Receiver, _ token: UInt64, limit: Int) -> Bool {
        gateways.append(receiver.gateway)
        tokens.append(token)
        guard receivers.count >= limit else {
            receivers.append(receiver)
            return true
        }
        let weakest = receivers.indices.min { Self.strength(receivers[$0]) < Self.strength(receivers[$1]) }
        if let weakest, Self.strength(receivers[weakest]) < Self.strength(receiver) { receivers[weakest] = receiver }
        return false
    }

    /// Makes a group whose window ended in an earlier engine.
    static func ended(_ message: FleetMessage, _ content: ContentKey, gateway: Int, at time: Duration) -> Group {
        let receiver = Receiver(gateway: gateway, rssi: nil, time: "", number: nil)
        var group = Group(message, content, receiver, 0, time)
        _ = group.end(at: time) { _ in "" }
        return group
    }

    private static func strength(_ receiver: Receiver) -> Int { receiver.rssi ?? Int.min }

    /// Ends the window and returns the observation. The readings are not kept.
    mutating func end(at time: Duration, name: (Int) -> String) -> CombinedObservation {
        isOpen = false
        end = time
        // Sorted by the arrival among those of the same strength.
        let order = receivers.indices.sorted { first, second in
            let (left, right) = (Self.strength(receivers[first]), Self.strength(receivers[second]))
            return left == right ? first < second : left > right
        }
        defer { (readings, receivers, tokens, self.time) = ("", [], [], "") }
        return CombinedObservation(
            address: content.address,
            format: tag.format,
            counter: content.counter,
            readings: readings,
            time: self.time,
            receivers: order.map { index in
                let receiver = receivers[index]
                return .init(
                    gateway: name(receiver.gateway),
                    rssi: receiver.rssi,
                    time: receiver.time,
                    number: receiver.number
                )
            },
            tokens: tokens
        )
    }
}

/// The received sequence numbers of a gateway's last two starts.
struct GatewayHistory {
    private var boot: UInt32?
    private var history = SequenceHistory()
    private var previous: (boot: UInt32, history: SequenceHistory)?
    /// The delays of its messages.
    var offset = ClockOffset()

    /// Remembers the number of a message.
    mutating func insert(_ number: FleetMessage.Number) -> (SequenceHistory.Insertion, isRestart: Bool) {
        if boot == number.boot { return (history.insert(number.sequence), false) }
        if previous?.boot == number.boot, let insertion = previous?.history.insert(number.sequence) {
            return (insertion, false)
        }
        if let boot { previous = (boot, history) }
        let isRestart = boot != nil
        boot = number.boot
        history = SequenceHistory()
        return (history.insert(number.sequence), isRestart)
    }
}
