import BLEByteCoding
import BluetoothTypes

/// The last packet of each device that sends events, so that repetitions of an advertisement do not repeat events.
///
/// The table holds at most `limit` devices. It has two halves: when the newer half is full, it becomes the older half,
/// and the devices of the former older half are forgotten. Each operation has constant amortized cost.
struct RecentPackets {
    /// What identifies a packet.
    struct Packet: Equatable {
        /// The 8-bit packet number, if the packet has one.
        var number: UInt8?
        /// A hash of the content.
        var content: Int
        /// When it was received last.
        var time: Instant
    }

    private let halfLimit: Int
    private var newer: [UInt64: Packet] = [:]
    private var older: [UInt64: Packet] = [:]

    init(limit: Int) {
        halfLimit = max(1, limit / 2)
    }

    /// Returns whether the packet repeats the device's last packet, or is older, and remembers it otherwise.
    ///
    /// A packet with the number of the last packet is a repetition. A packet with a number of the 128 before the last
    /// is late. Both are new if the last packet, or its last repetition, was received at least a minute ago: the device
    /// has restarted. Late packets do not extend this minute. A packet without a number is a repetition if it has the
    /// content of the last packet, and the device was silent for less than 4 seconds.
    mutating func isRepeat(number: UInt8?, content: RawSpan, from address: UInt64, now: Instant) -> Bool {
        let packet = Packet(number: number, content: number == nil ? hash(content) : 0, time: now)
        guard let last = newer[address] ?? older[address] else {
            remember(packet, address)
            return false
        }
        let isRepeat = repeats(packet, last)
        // A late packet replaces neither the last one nor its time. Otherwise, the packets of a restarted device would
        // be late until its number has passed the last one.
        let isLate = isRepeat && packet.number != last.number
        remember(isLate ? last : packet, address)
        return isRepeat
    }

    private func repeats(_ packet: Packet, _ last: Packet) -> Bool {
        guard let number = packet.number, let lastNumber = last.number else {
            return packet.number == last.number && packet.content == last.content
                && packet.time - last.time < .seconds(4)
        }
        let advance = number &- lastNumber
        return (advance == 0 || advance >= 128) && packet.time - last.time < .seconds(60)
    }

    private mutating func remember(_ packet: Packet, _ address: UInt64) {
        if newer[address] == nil, newer.count >= halfLimit {
            older = newer
            newer = [:]
        }
        older[address] = nil
        newer[address] = packet
    }

    private func hash(_ content: RawSpan) -> Int {
        var hasher = Hasher()
        for offset in 0..<content.byteCount { hasher.combine(content[checked: offset]) }
        return hasher.finalize()
    }
}
