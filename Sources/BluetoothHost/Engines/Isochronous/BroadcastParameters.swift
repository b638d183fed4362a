import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// The code that encrypts the streams of a broadcast isochronous group (Vol 3, Part C, 3.2.6).
public struct BroadcastCode: Hashable, Sendable {
    /// The code; its first byte on the wire is the least significant.
    let value: UInt128

    /// Creates a code from the text that people exchange.
    ///
    /// - Parameter text: 4 to 16 bytes in UTF-8. Returns nil for any other length.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard (4...16).contains(bytes.count) else { return nil }
        value = BroadcastCode.value(of: bytes)
    }

    /// Creates a code from its bytes.
    ///
    /// - Parameter bytes: 16 bytes, in the order of the text. Returns nil for any other number.
    public init?(bytes: [UInt8]) {
        guard bytes.count == 16 else { return nil }
        value = BroadcastCode.value(of: bytes)
    }

    private static func value(of bytes: [UInt8]) -> UInt128 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt128($1) }
    }
}

extension BroadcastCode: CustomStringConvertible {
    /// A fixed text: the code is a secret.
    public var description: String { "BroadcastCode" }
}

/// The reason why a broadcast isochronous group cannot be received.
public enum BroadcastError: Error, Hashable, Sendable {
    /// The code does not decrypt the streams.
    case wrongCode
    /// The streams are encrypted, and there is no code.
    case codeRequired
    /// The streams are not encrypted, but there is a code.
    case notEncrypted
    /// The group has fewer streams than the number of one that was requested.
    case noStream(number: Int, count: Int)
}

extension BroadcastError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .wrongCode: "the broadcast code is wrong; ask the broadcaster's owner for the code"
        case .codeRequired: "the broadcast is encrypted; give its broadcast code"
        case .notEncrypted: "the broadcast is not encrypted; receive it without a broadcast code"
        case .noStream(let number, let count): "the broadcast has no stream \(number); it has streams 1 to \(count)"
        }
    }
}

/// The parameters of a broadcast isochronous group that this device sends (Vol 4, Part E, 7.8.103).
public struct BroadcastGroupParameters: Hashable, Sendable {
    /// The number of streams, 1 to 31. All have the same parameters.
    public var streamCount: Int
    /// The time between two SDUs of a stream, 255 µs to 1,048,575 µs. PDUs are unframed if the times of SDUs and of
    /// events can agree, and framed otherwise, as with 44.1 kHz audio (Vol 6, Part G, 2).
    public var sduInterval: Duration
    /// The longest SDU in bytes, 1 to 4,095.
    public var maximumSDU: Int
    /// The longest time for an SDU, 5 ms to 4 s, in whole milliseconds.
    public var maximumLatency: Duration
    /// How often a PDU may be sent again, 0 to 30; a recommendation to the controller.
    public var retransmissions: Int
    /// The PHYs that may be used.
    public var phys: PHYSet
    /// The code that receivers need; nil for streams that anyone can receive.
    public var code: BroadcastCode?

    /// Creates parameters. By default, one stream has an SDU of at most 120 bytes each 10 ms.
    public init(
        streamCount: Int = 1,
        sduInterval: Duration = .milliseconds(10),
        maximumSDU: Int = 120,
        maximumLatency: Duration = .milliseconds(40),
        retransmissions: Int = 2,
        phys: PHYSet = [.le1M, .le2M],
        code: BroadcastCode? = nil
    ) {
        self.streamCount = streamCount
        self.sduInterval = sduInterval
        self.maximumSDU = maximumSDU
        self.maximumLatency = maximumLatency
        self.retransmissions = retransmissions
        self.phys = phys
        self.code = code
    }

    /// The command that creates a group with these parameters.
    func command(bigHandle: UInt8, advertisingHandle: UInt8) throws(HostError) -> LECreateBIG {
        guard (1...31).contains(streamCount) else {
            throw .invalidArgument("a broadcast group has 1 to 31 streams, not \(streamCount)")
        }
        guard (.microseconds(255) ... .microseconds(1_048_575)).contains(sduInterval) else {
            throw .invalidArgument("the SDU interval is 255 µs to 1,048,575 µs, not \(sduInterval)")
        }
        guard (1...ISODataLoadHeader.maximumSDULength).contains(maximumSDU) else {
            throw .invalidArgument("the maximum SDU of a broadcast is 1 to 4,095 bytes, not \(maximumSDU)")
        }
        guard (.milliseconds(5) ... .seconds(4)).contains(maximumLatency) else {
            throw .invalidArgument("the maximum latency is 5 ms to 4 s, not \(maximumLatency)")
        }
        guard (0...30).contains(retransmissions) else {
            throw .invalidArgument("the number of retransmissions is 0 to 30, not \(retransmissions)")
        }
        guard !phys.isEmpty else { throw .invalidArgument("a broadcast group needs at least one PHY") }
        let interval = sduInterval.wholeNanoseconds / 1000
        return LECreateBIG(
            bigHandle: bigHandle,
            advertisingHandle: advertisingHandle,
            numBIS: UInt8(streamCount),
            sduInterval: UInt32(interval),
            maxSDU: UInt16(maximumSDU),
            maxTransportLatency: UInt16(maximumLatency.wholeNanoseconds / 1_000_000),
            rtn: UInt8(retransmissions),
            phy: phys,
            framing: ISOFraming.of(
                sduInterval: Int(interval),
                maximumSDU: maximumSDU,
                latency: Int(maximumLatency.wholeNanoseconds / 1000),
                burstLimit: 7
            ),
            broadcastCode: code?.value
        )
    }
}

/// How a broadcast isochronous group is received (Vol 4, Part E, 7.8.106).
public struct BroadcastReceptionParameters: Hashable, Sendable {
    /// The numbers of the streams to receive, each 1 to 31; nil for all streams of the group.
    public var streams: [Int]?
    /// The code of the broadcaster; nil for streams that are not encrypted.
    public var code: BroadcastCode?
    /// The time without a received PDU after which the group counts as lost: 100 ms to 163.84 s, in steps of 10 ms.
    public var timeout: Duration

    /// Creates parameters. By default, all streams of a group without encryption are received.
    public init(streams: [Int]? = nil, code: BroadcastCode? = nil, timeout: Duration = .seconds(2)) {
        self.streams = streams
        self.code = code
        self.timeout = timeout
    }

    /// - Throws: ``HostError/invalidArgument(_:)`` if a value is out of its range.
    func check() throws(HostError) {
        if let streams {
            guard !streams.isEmpty, Set(streams).count == streams.count,
                streams.allSatisfy({ (1...LEBIGCreateSync.maximumCount).contains($0) })
            else {
                throw .invalidArgument("the numbers of the streams are 1 to 31, each once, not \(streams)")
            }
        }
        guard (.milliseconds(100) ... .milliseconds(163_840)).contains(timeout) else {
            throw .invalidArgument("the timeout of a broadcast is 100 ms to 163.84 s, not \(timeout)")
        }
    }

    /// The reason why a group cannot be received with these parameters; nil if it can.
    func obstacle(to information: BroadcastGroupInformation) -> BroadcastError? {
        if information.isEncrypted, code == nil { return .codeRequired }
        if !information.isEncrypted, code != nil { return .notEncrypted }
        let count = information.streamCount
        guard let missing = (streams ?? [1]).first(where: { $0 > count }) else { return nil }
        return .noStream(number: missing, count: count)
    }

    /// The numbers of the streams to receive of a group, in ascending order.
    func streamNumbers(of information: BroadcastGroupInformation) -> [UInt8] {
        (streams ?? Array(1...max(1, information.streamCount))).sorted().map { UInt8(truncatingIfNeeded: $0) }
    }

    /// The command that starts the reception of a group.
    ///
    /// - Parameter numbers: the numbers of the streams.
    func command(bigHandle: UInt8, syncHandle: UInt16, streams numbers: [UInt8]) -> LEBIGCreateSync {
        LEBIGCreateSync(
            bigHandle: bigHandle,
            syncHandle: syncHandle,
            broadcastCode: code?.value,
            bigSyncTimeout: UInt16(truncatingIfNeeded: timeout.wholeNanoseconds / 10_000_000),
            streams: numbers
        )
    }
}

/// The properties of a broadcast isochronous group, as its periodic advertising train announces them (Vol 4, Part E,
/// 7.7.65.34).
public struct BroadcastGroupInformation: Hashable, Sendable {
    /// The number of streams, 1 to 31.
    public let streamCount: Int
    /// The time between two events of the group.
    public let interval: Duration
    /// The time between two SDUs of a stream.
    public let sduInterval: Duration
    /// The longest SDU, in bytes.
    public let maximumSDU: Int
    /// The PHY of the streams.
    public let phy: PHY
    /// Whether receivers need a code.
    public let isEncrypted: Bool

    init(_ event: LEBIGInfoAdvertisingReport) {
        // The announcement comes from the air.
        streamCount = min(Int(event.numBIS), LEBIGCreateSync.maximumCount)
        interval = .microseconds(1250 * Int(event.isoInterval))
        sduInterval = .microseconds(Int(event.sduInterval))
        maximumSDU = Int(event.maxSDU)
        phy = event.phy
        isEncrypted = event.encryption != 0
    }
}
