import BLE
import BLEHCITransport
import BluetoothTesting

/// A record of the operations and values of one run, and of violations of the rules.
final class Ledger: Sendable {
    private struct Operation {
        let name: String
        let deadline: Duration
    }

    /// The values of one characteristic on the way from one device to another.
    struct Stream: Hashable {
        let sender: Int
        let characteristic: BluetoothUUID
        /// The client that writes the values, if they are written.
        var client: ClientID?
        /// The subscription of the receiver, if the values are sent to it.
        var subscription: UInt64?
    }

    let world: World
    private let confined: LoopConfined<State>
    private var state: State { confined.value }

    private final class State {
        var violations: [String] = []
        var operationCount = 0
        var errorCount = 0
        var deliveredCount = 0
        var operations: [Int: Operation] = [:]
        var earliestDeadline = Duration.seconds(1_000_000)
        /// All values passed on for sending or writing, by characteristic.
        var sent: [BluetoothUUID: Set<[UInt8]>] = [:]
        var last: [Stream: UInt32] = [:]
        var delivered: [Stream: Set<[UInt8]>] = [:]
        var lastNumber: UInt32 = 0
        var streamCount: UInt64 = 0
        var lastValues: [Stream: [UInt8]] = [:]
        var channelValues = ChannelValues()
        var hasFaults = false
        var losesData = false
        var counts: [String: Int] = [:]
    }

    init(world: World) {
        self.world = world
        confined = LoopConfined(State(), to: world.loop)
    }

    var violations: [String] { state.violations }
    /// The number of operations that were started.
    var operationCount: Int { state.operationCount }
    /// The number of operations that ended in an error.
    var errorCount: Int { state.errorCount }
    var deliveredCount: Int { state.deliveredCount }

    /// Whether faults occur in the world.
    var hasFaults: Bool {
        get { state.hasFaults }
        set { state.hasFaults = newValue }
    }

    /// Whether a controller has lost data of links: then values on channels and enhanced bearers may be missing or
    /// mixed.
    var losesData: Bool {
        get { state.losesData }
        set { state.losesData = newValue }
    }

    /// The values of the world's L2CAP channels.
    var channelValues: ChannelValues {
        _read { yield state.channelValues }
        _modify { yield &state.channelValues }
    }

    /// How often each event happened that is counted by its name.
    var counts: [String: Int] { state.counts }

    func count(_ event: String) {
        state.counts[event, default: 0] += 1
    }

    func lastValue(of stream: Stream) -> [UInt8]? { state.lastValues[stream] }

    func setLastValue(_ value: [UInt8], of stream: Stream) { state.lastValues[stream] = value }

    func violate(_ rule: String) {
        state.violations.append("at \(world.elapsed): \(rule)")
    }

    // MARK: Operations

    /// Performs an operation that must end within `bound` of the world's time; nil if it ended in an error.
    func operation<Value: Sendable>(
        _ name: String,
        within bound: Duration,
        _ body: () async throws -> Value
    ) async -> Value? {
        state.operationCount += 1
        let identifier = state.operationCount
        state.operations[identifier] = Operation(name: name, deadline: world.elapsed + bound)
        state.earliestDeadline = min(state.earliestDeadline, world.elapsed + bound)
        defer { state.operations[identifier] = nil }
        do {
            let value = try await body()
            count(Self.successes(of: Self.kind(of: name)))
            return value
        } catch {
            state.errorCount += 1
            if let error = error as? BLEError { check(error, of: name) }
            return nil
        }
    }

    /// The name under which the operations of a kind that ended without an error are counted.
    static func successes(of kind: String) -> String { "successes of \"\(kind)\"" }

    /// The kind of an operation: its name without devices and numbers, such as "open channels" or "connects to".
    private static func kind(of name: String) -> String {
        let words = (name.split(separator: ": ").last ?? "").split(separator: " ")
        return words.filter { !$0.hasPrefix("device") && Int($0) == nil }.joined(separator: " ")
    }

    /// Reports errors that only a fault of the host explains, because no device here breaks the protocol above HCI.
    /// Only lost data of links may end a channel by a violation.
    func check(_ error: BLEError, of name: String) {
        switch error {
        case .channel(.ended(.violation)) where losesData: break
        case .malformedResponse, .invalidArgument, .channel(.ended(.violation)): violate("\(name): \(error)")
        default: break
        }
    }

    /// Reports operations that have taken too long.
    func checkDeadlines() {
        guard world.elapsed > state.earliestDeadline else { return }
        for (identifier, operation) in state.operations.sorted(by: { $0.key < $1.key })
        where world.elapsed > operation.deadline {
            violate("\(operation.name) has not ended in time")
            state.operations[identifier] = nil
        }
        state.earliestDeadline = state.operations.values.map(\.deadline).min() ?? .seconds(1_000_000)
    }

    // MARK: Values

    /// Returns a new sequence of values.
    func makeStream(from sender: Int, of characteristic: BluetoothUUID) -> Stream {
        state.streamCount += 1
        return Stream(sender: sender, characteristic: characteristic, subscription: state.streamCount)
    }

    /// Returns a unique value of `length` bytes, at least 4. Its first four bytes are its number.
    func makeValue(of characteristic: BluetoothUUID, length: Int) -> [UInt8] {
        state.lastNumber += 1
        let number = state.lastNumber
        let value = (0..<max(length, 4)).map { index in
            index < 4
                ? UInt8(truncatingIfNeeded: number >> (8 * UInt32(index)))
                : UInt8(truncatingIfNeeded: UInt32(index) &* 7 &+ number)
        }
        state.sent[characteristic, default: []].insert(value)
        return value
    }

    /// Checks a received value: it must have been sent as a whole.
    func expectSent(_ value: [UInt8], of characteristic: BluetoothUUID, where place: String) {
        state.deliveredCount += 1
        if state.sent[characteristic]?.contains(value) != true {
            violate("\(place): \(value.count) bytes of \(characteristic) that nobody has sent")
        }
    }

    /// Checks a value that was read in parts of one of `partLengths` bytes. Other clients may have written the value
    /// between two reads, so each part may belong to another value.
    func expectSent(
        _ value: [UInt8],
        of characteristic: BluetoothUUID,
        inPartsOf partLengths: Set<Int>,
        where place: String
    ) {
        guard partLengths.contains(where: { value.count > $0 }) else {
            return expectSent(value, of: characteristic, where: place)
        }
        state.deliveredCount += 1
        let isSent = partLengths.contains { partLength in
            stride(from: 0, to: value.count, by: partLength).allSatisfy { start in
                let part = value[start..<min(start + partLength, value.count)]
                return state.sent[characteristic]?.contains { $0.count == value.count && $0[part.indices] == part }
                    ?? false
            }
        }
        if !isSent { violate("\(place): bytes of \(characteristic) that nobody has sent") }
    }

    /// Checks a received value of a sequence: it must have been sent later than the previous one.
    func expectNext(_ value: [UInt8], in stream: Stream, where place: String) {
        expectSent(value, of: stream.characteristic, where: place)
        let number = value.prefix(4).reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        if let last = state.last[stream], number <= last {
            violate("\(place): value \(number) of \(stream.characteristic) after value \(last)")
        }
        state.last[stream] = number
    }

    /// Checks a received value that may arrive only once, in any order.
    func expectOnce(_ value: [UInt8], in stream: Stream, where place: String) {
        expectSent(value, of: stream.characteristic, where: place)
        if !state.delivered[stream, default: []].insert(value).inserted {
            violate("\(place): a value of \(stream.characteristic) came twice")
        }
    }
}
