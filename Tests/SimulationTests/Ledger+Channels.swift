import BLE

// The values on L2CAP channels and in periodic advertising trains.
extension Ledger {
    /// The values of all channels, by their numbers.
    struct ChannelValues {
        /// The channel of a value, and its place among the values of the channel.
        var places: [UInt32: (channel: Int, index: Int)] = [:]
        /// The number of values that were written to each channel.
        var writtenCounts: [Int] = []
        /// The channels whose writer has closed them after its last value.
        var finished: Set<Int> = []
        /// The number of values that arrived.
        var receivedCount = 0
    }

    /// The values that one side of a channel has received.
    struct ChannelReceipt {
        var channel: Int?
        var count = 0
    }

    /// Returns the number of a new channel.
    func makeChannel() -> Int {
        channelValues.writtenCounts.append(0)
        return channelValues.writtenCounts.count - 1
    }

    /// Returns the next value for a channel, at least 4 bytes.
    func makeValue(onChannel channel: Int, length: Int) -> [UInt8] {
        let value = makeValue(of: Station.channel, length: length)
        channelValues.places[Self.number(of: value)] = (channel, channelValues.writtenCounts[channel])
        channelValues.writtenCounts[channel] += 1
        return value
    }

    func finish(channel: Int) {
        channelValues.finished.insert(channel)
    }

    /// Checks a value from a channel: none before it may be missing, because a link repeats lost packets until it ends.
    func expectNext(_ value: [UInt8], in receipt: inout ChannelReceipt, where place: String) {
        if losesData {
            receipt.count += 1
            return
        }
        expectSent(value, of: Station.channel, where: place)
        channelValues.receivedCount += 1
        guard let (channel, index) = channelValues.places[Self.number(of: value)] else { return }
        if receipt.channel ?? channel != channel { violate("\(place): a value of another channel") }
        if index != receipt.count { violate("\(place): value \(index) of a channel after \(receipt.count) values") }
        receipt.channel = channel
        receipt.count = index + 1
    }

    /// Checks the values of a channel that the peer has closed: all have arrived if it has closed the channel after the
    /// last.
    func expectAll(in receipt: ChannelReceipt, where place: String) {
        guard !losesData, let channel = receipt.channel, channelValues.finished.contains(channel) else { return }
        let count = channelValues.writtenCounts[channel]
        if receipt.count != count { violate("\(place): \(receipt.count) of \(count) values of a closed channel") }
    }

    /// Checks a value of a train: it may be repeated, but none comes after a later one.
    func expectSameOrNext(_ value: [UInt8], in stream: Stream, where place: String) {
        guard value != lastValue(of: stream) else { return }
        expectNext(value, in: stream, where: place)
        setLastValue(value, of: stream)
    }

    private static func number(of value: [UInt8]) -> UInt32 {
        value.prefix(4).reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    }
}
