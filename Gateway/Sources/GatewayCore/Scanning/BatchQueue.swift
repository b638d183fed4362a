import ESPHomeProtocol
import NIOCore

/// Puts the advertisements of all adapters into batches, and decides when they are sent.
///
/// An adapter receives advertisements in turns of its loop. The advertisements of a turn are sent together at its end,
/// so the event loop of the clients wakes up once. The advertisements of a turn with only a few of them wait for more.
/// Turns are so short while the adapter has connections, because it then does not delay reads, and where there are few
/// devices.
struct BatchQueue {
    /// The longest time that an advertisement waits for others.
    static let delay = TimeAmount.milliseconds(40)
    /// A turn with this number of advertisements is sent at its end.
    static let gatheredCount = 4
    /// A turn with this number of full batches is sent in parts.
    static let fullBatchLimit = 16

    /// Full batches that are not sent yet.
    private var fullBatches: [AdvertisementBatch] = []
    private var batch = AdvertisementBatch()
    /// When the batch is sent, if it is not full before; nil if it is empty, or if no turn has ended since it began.
    private(set) var deadline: NIODeadline?
    /// The number of advertisements that each adapter has received in its turn.
    private var turnCounts: [Int]

    init(adapterCount: Int) {
        turnCounts = [Int](repeating: 0, count: adapterCount)
    }

    /// Adds an advertisement.
    ///
    /// - Returns: whether it is the first one in a turn of the adapter, and batches to send.
    mutating func append(
        _ advertisement: RawAdvertisement,
        from adapter: Int
    ) -> (isFirst: Bool, full: [AdvertisementBatch]) {
        batch.append(advertisement)
        if batch.isFull { closeBatch() }
        turnCounts[adapter] += 1
        return (turnCounts[adapter] == 1, fullBatches.count >= Self.fullBatchLimit ? takeFullBatches() : [])
    }

    /// Ends a turn of an adapter.
    ///
    /// - Returns: batches to send.
    mutating func endTurn(of adapter: Int, at now: NIODeadline) -> [AdvertisementBatch] {
        if turnCounts[adapter] >= Self.gatheredCount { closeBatch() }
        turnCounts[adapter] = 0
        if batch.count > 0, deadline == nil { deadline = now + Self.delay }
        return takeFullBatches()
    }

    /// - Returns: batches to send, if the batch has waited long enough.
    mutating func advance(to now: NIODeadline) -> [AdvertisementBatch] {
        guard let deadline, deadline <= now else { return [] }
        return takeAll()
    }

    /// Takes all batches, also one that is not full.
    mutating func takeAll() -> [AdvertisementBatch] {
        closeBatch()
        return takeFullBatches()
    }

    private mutating func closeBatch() {
        deadline = nil
        guard batch.count > 0 else { return }
        fullBatches.append(batch)
        batch = AdvertisementBatch()
    }

    private mutating func takeFullBatches() -> [AdvertisementBatch] {
        defer { fullBatches = [] }
        return fullBatches
    }
}
