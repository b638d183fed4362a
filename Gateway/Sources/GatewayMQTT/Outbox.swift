import DequeModule
import Logging

/// The messages that wait for the broker, and those that it has not confirmed, in their order.
///
/// While the broker is there, messages are in memory only. While it is away, they are stored in a file; after it has come
/// back, later messages follow them. If the file cannot be written, messages wait in memory.
struct Outbox {
    private struct Entry {
        let message: MQTTMessage
        /// The number in the store; nil if the message is not stored.
        let number: Int64?
    }

    /// The greatest number of messages that the broker has not confirmed.
    static let window = 64
    /// The greatest number of messages that wait in memory.
    static let memoryLimit = 4096

    /// The number of messages that were dropped because too many waited.
    private(set) var droppedCount: UInt64 = 0
    private var store: MessageStore?
    private let limit: Int
    private let logger: Logger
    private var memory: Deque<Entry> = []
    private var unconfirmed: [Int32: Entry] = [:]
    private var lastLoaded: Int64 = 0
    /// The number of stored messages that are not in memory.
    private var storedCount: Int
    private var confirmed: [Int64] = []
    private var hasFailed = false

    /// - Parameter limit: the greatest number of stored messages.
    init(limit: Int, logger: Logger) {
        self.limit = limit
        self.logger = logger
        storedCount = 0
    }

    /// Uses a store from now on. The messages in it follow those in memory.
    mutating func use(_ store: MessageStore) {
        self.store = store
        storedCount = store.count
    }

    /// The number of messages that wait, or that the broker has not confirmed.
    var count: Int { memory.count + storedCount + unconfirmed.count }

    /// Whether another message can be sent before the broker confirms an earlier one.
    var hasRoom: Bool { unconfirmed.count < Self.window }

    /// Appends a message.
    mutating func append(_ message: MQTTMessage, isConnected: Bool) {
        if !isConnected || storedCount > 0, store(message) { return }
        memory.append(Entry(message: message, number: nil))
        if memory.count > Self.memoryLimit {
            memory.removeFirst()
            drop(1)
        }
    }

    private mutating func drop(_ count: Int) {
        if droppedCount == 0 { logger.warning("the broker is away for too long: the oldest messages are dropped") }
        droppedCount += UInt64(count)
    }

    private mutating func store(_ message: MQTTMessage) -> Bool {
        let isStored = change { store in
            try store.append(CollectionOfOne(message))
        }
        guard isStored else { return false }
        storedCount += 1
        // Some are removed at once, so that not each message costs a search.
        if let count = store?.count, count > limit {
            let excess = min(count - limit + limit / 100, storedCount)
            if change({ try $0.removeOldest(excess) }) {
                storedCount -= excess
                drop(excess)
            }
        }
        return true
    }

    /// Changes the store.
    ///
    /// - Returns: false if there is none, or if it fails.
    private mutating func change(_ body: (inout MessageStore) throws -> Void) -> Bool {
        guard var changed = store else { return false }
        defer { store = changed }
        do {
            try body(&changed)
            if hasFailed { logger.notice("messages for the broker are stored again") }
            hasFailed = false
            return true
        } catch {
            if !hasFailed { logger.error("messages for the broker cannot be stored: \(error)") }
            hasFailed = true
            return false
        }
    }

    /// Takes the next message; nil if none waits.
    private mutating func next() -> Entry? {
        if let entry = memory.popFirst() { return entry }
        guard storedCount > 0 else { return nil }
        var entries: [MessageStore.Entry] = []
        let last = lastLoaded
        guard change({ entries = try $0.entries(after: last, limit: Self.window) }), !entries.isEmpty else {
            return nil
        }
        lastLoaded = entries.last?.number ?? lastLoaded
        storedCount = max(0, storedCount - entries.count)
        memory.append(contentsOf: entries.map { Entry(message: $0.message, number: $0.number) })
        return memory.popFirst()
    }

    /// Sends messages until the window is full.
    ///
    /// - Parameter send: gives a message to the connection; returns the number of its delivery, nil if it is not taken.
    mutating func sendAll(_ send: (MQTTMessage) -> Int32?) {
        while hasRoom, let entry = next() {
            guard let delivery = send(entry.message) else { return memory.prepend(entry) }
            unconfirmed[delivery] = entry
        }
    }

    /// Removes a message that the broker has confirmed.
    mutating func confirm(_ delivery: Int32) {
        guard let entry = unconfirmed.removeValue(forKey: delivery) else { return }
        if let number = entry.number { confirmed.append(number) }
        guard confirmed.count >= Self.window || unconfirmed.isEmpty, !confirmed.isEmpty else { return }
        let numbers = confirmed
        if change({ try $0.remove(numbers) }) { confirmed = [] }
    }
}
