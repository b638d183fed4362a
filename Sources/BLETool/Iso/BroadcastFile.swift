import BLE
import BluetoothTypes

/// The parts of a file that a broadcast repeats.
///
/// Each SDU begins with the number of its part, as in ``StreamTransfer``. After the last part, an SDU with the number
/// ``StreamTransfer/endMark`` announces the number of parts. The broadcaster repeats all of it, because it does not
/// know when receivers begin, and what they have lost.
struct BroadcastFile {
    private(set) var parts: [[UInt8]] = []
    private(set) var byteCount = 0

    init(_ input: ByteInput, partLength: Int) async throws {
        var file = FileParts(input, partLength: partLength)
        while let part = try await file.next() { parts.append(part) }
        byteCount = file.byteCount
    }

    /// Sends the file, one SDU in each SDU interval.
    ///
    /// - Parameter rounds: how often; nil to repeat it until the task is cancelled.
    func send(on stream: IsochronousStream, rounds: Int?) async throws {
        var pace = Pace(interval: stream.sduInterval)
        var round = 0
        let end = StreamTransfer.bytes(StreamTransfer.endMark) + StreamTransfer.bytes(UInt32(parts.count))
        while rounds.map({ round < $0 }) ?? true {
            for part in parts + [end] {
                try await pace.wait()
                try await stream.send(part)
            }
            round += 1
        }
        // The last SDUs are sent before the stream is closed.
        for _ in 0..<20 { try await pace.wait() }
    }
}

/// The parts of a broadcast file that were received.
struct ReceivedBroadcastFile {
    /// The most bytes of a file, because the sender can be anyone.
    static let limit = 64 << 20

    private var parts: [UInt32: [UInt8]] = [:]
    private var count: UInt32?
    private(set) var byteCount = 0
    /// The number of SDUs that the controller has reported as lost.
    private(set) var lost = 0

    var partCount: Int { parts.count }

    /// Takes an SDU.
    ///
    /// - Returns: the whole file, when its last part has arrived.
    mutating func take(_ sdu: IsochronousSDU) throws(ToolError) -> [UInt8]? {
        guard sdu.status == .valid else {
            lost += 1
            return nil
        }
        guard let number = StreamTransfer.number(in: sdu.data, at: 0) else { return nil }
        if number == StreamTransfer.endMark {
            count = StreamTransfer.number(in: sdu.data, at: 4)
            if let count {
                parts = parts.filter { $0.key < count }
                byteCount = parts.values.reduce(0) { $0 + $1.count }
            }
        } else if parts[number] == nil, number < count ?? .max {
            // Each part has a cost of its own, also if it is empty.
            let cost = byteCount + sdu.data.count + 64 * parts.count
            guard cost <= Self.limit else { throw .broadcastTooLong(Self.limit) }
            parts[number] = Array(sdu.data.dropFirst(4))
            byteCount += sdu.data.count - 4
        }
        guard let count, parts.count == count else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(byteCount)
        for index in 0..<count {
            guard let part = parts[index] else { return nil }
            bytes += part
        }
        return bytes
    }
}
