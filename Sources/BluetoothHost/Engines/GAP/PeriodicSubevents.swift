import BLEHCI
import BluetoothTypes

/// The subevents of a periodic advertising train, with response slots (Vol 3, Part C, 9.5; Vol 6, Part B, 4.4.2.12).
///
/// Each event of the train consists of the subevents, one after the other. In each subevent, the advertiser sends one
/// packet. After a delay, the response slots follow, in which receivers answer.
public struct PeriodicSubeventConfiguration: Hashable, Sendable {
    /// The number of subevents: 1 to 128.
    public var count: Int
    /// The time from the start of a subevent to the start of the next: 7.5 ms to 318.75 ms, in steps of 1.25 ms.
    public var interval: Duration
    /// The number of response slots in each subevent: 0 to 255.
    public var responseSlotCount: Int
    /// The time from the start of a subevent to its first response slot: 1.25 ms to 317.5 ms, in steps of 1.25 ms.
    /// Ignored without response slots.
    public var responseSlotDelay: Duration
    /// The time from the start of a response slot to the start of the next: 0.25 ms to 31.875 ms, in steps of 0.125 ms.
    /// Ignored without response slots.
    public var responseSlotSpacing: Duration

    /// Creates a configuration. The default has 4 response slots of 2.5 ms, in which the longest response fits on LE
    /// 1M.
    public init(
        count: Int,
        interval: Duration = .milliseconds(20),
        responseSlotCount: Int = 4,
        responseSlotDelay: Duration = .milliseconds(10),
        responseSlotSpacing: Duration = .microseconds(2500)
    ) {
        self.count = count
        self.interval = interval
        self.responseSlotCount = responseSlotCount
        self.responseSlotDelay = responseSlotDelay
        self.responseSlotSpacing = responseSlotSpacing
    }

    /// Checks what the caller has chosen (Vol 4, Part E, 7.8.61).
    ///
    /// - Parameter eventInterval: the time between two events of the train.
    /// - Throws: ``HostError/invalidArgument(_:)`` if a value is out of its range, or the parts do not fit the whole.
    func check(eventInterval: Duration) throws(HostError) {
        guard (1...128).contains(count) else { throw .invalidArgument("a train has 1 to 128 subevents, not \(count)") }
        guard interval >= .microseconds(7500), interval <= .microseconds(318_750) else {
            throw .invalidArgument("the interval of subevents is 7.5 ms to 318.75 ms, not \(interval)")
        }
        guard interval * count <= eventInterval else {
            throw .invalidArgument(
                "\(count) subevents of \(interval) need \(interval * count); the train's interval is \(eventInterval)"
            )
        }
        guard (0...255).contains(responseSlotCount) else {
            throw .invalidArgument("a subevent has 0 to 255 response slots, not \(responseSlotCount)")
        }
        guard responseSlotCount > 0 else { return }
        guard responseSlotDelay >= .microseconds(1250), responseSlotDelay <= .microseconds(317_500) else {
            throw .invalidArgument("the delay of response slots is 1.25 ms to 317.5 ms, not \(responseSlotDelay)")
        }
        guard responseSlotSpacing >= .microseconds(250), responseSlotSpacing <= .microseconds(31_875) else {
            throw .invalidArgument("the spacing of response slots is 0.25 ms to 31.875 ms, not \(responseSlotSpacing)")
        }
        let end = responseSlotDelay + responseSlotSpacing * responseSlotCount
        guard end <= interval else {
            throw .invalidArgument(
                "the response slots end \(end) after the start of their subevent, which takes \(interval)"
            )
        }
    }
}

/// The subevents of a received periodic advertising train.
public struct PeriodicSubeventTiming: Hashable, Sendable {
    /// The number of subevents: 1 to 128.
    public let count: Int
    /// The time from the start of a subevent to the start of the next.
    public let interval: Duration
    /// The time from the start of a subevent to its first response slot; zero without response slots.
    public let responseSlotDelay: Duration
    /// The time from the start of a response slot to the start of the next; zero without response slots.
    public let responseSlotSpacing: Duration

    /// Nil for a train without subevents.
    init?(count: UInt8, interval: UInt8, responseSlotDelay: UInt8, responseSlotSpacing: UInt8) {
        guard count > 0 else { return nil }
        self.count = Int(count)
        self.interval = .microseconds(1250 * Int(interval))
        self.responseSlotDelay = .microseconds(1250 * Int(responseSlotDelay))
        self.responseSlotSpacing = .microseconds(125 * Int(responseSlotSpacing))
    }
}

/// The data of one subevent in one event of a train, and the slots in which responses are expected.
public struct PeriodicSubeventData: Hashable, Sendable {
    /// The longest data in bytes (Vol 4, Part E, 7.8.125).
    public static let maximumLength = PeriodicAdvertisingSubeventPayload.maximumLength

    /// The subevent: 0 to 127.
    public var subevent: UInt8
    /// The data: up to ``maximumLength`` bytes.
    public var data: AdvertisingData
    /// The slots in which receivers may respond.
    public var responseSlots: Range<UInt8>

    /// Creates the data of a subevent.
    public init(_ data: AdvertisingData, subevent: UInt8, responseSlots: Range<UInt8> = 0..<0) {
        self.subevent = subevent
        self.data = data
        self.responseSlots = responseSlots
    }

    /// Checks what the caller has chosen.
    ///
    /// - Throws: ``HostError/invalidArgument(_:)`` if the train has no such subevent or slot, or the data is too long.
    func check(in train: PeriodicSubeventConfiguration) throws(HostError) {
        guard subevent < train.count else {
            throw .invalidArgument("the train has subevents 0 to \(train.count - 1), not \(subevent)")
        }
        guard responseSlots.upperBound <= train.responseSlotCount else {
            throw .invalidArgument(
                "a subevent has \(train.responseSlotCount) response slots, fewer than \(responseSlots.upperBound)"
            )
        }
        guard data.length <= Self.maximumLength else {
            throw .invalidArgument("a subevent has at most \(Self.maximumLength) bytes of data, not \(data.length)")
        }
    }

    /// The parameters of the HCI command.
    var parameters: LESetPeriodicAdvertisingSubeventData.Subevent {
        .init(
            subevent: subevent,
            responseSlotStart: responseSlots.lowerBound,
            responseSlotCount: UInt8(responseSlots.count),
            data: .init(data.bytes)
        )
    }
}

/// The content of one response slot of a subevent.
public struct PeriodicResponse: Hashable, Sendable {
    /// The result of receiving in the slot.
    public enum Outcome: Hashable, Sendable {
        /// A whole response.
        case received
        /// A response, of which a part is missing.
        case truncated
        /// No response, or one that could not be received.
        case failed
    }

    /// The subevent: 0 to 127.
    public let subevent: UInt8
    /// The response slot: 0 to 254.
    public let slot: UInt8
    /// The result of receiving in the slot.
    public let outcome: Outcome
    /// The AD structures, as they were received; empty if nothing was.
    public let data: AdvertisingData
    /// The signal strength in dBm: -127 to 20; nil if the controller does not know it.
    public let rssi: Int?
    /// The power at which the responder sends, in dBm; nil if it does not report it.
    public let txPower: Int?
    /// When the controller has reported the response, on the host's clock.
    public let time: Instant
}

/// An event of the subevents of a train.
package enum SubeventEvent: Equatable, Sendable {
    /// The controller requests data for these subevents, and none is queued.
    case dataRequested([UInt8])
    case response(PeriodicResponse)
    /// The controller has not sent the packet of this subevent.
    case notSent(subevent: UInt8)
    /// The advertisement has ended.
    case ended
}
