import BLEHCI
import BluetoothTypes

/// The identifier of one synchronization of a host.
package struct SynchronizationIdentifier: Hashable, Sendable {
    let value: UInt64
}

/// The periodic advertising train that an app wants to receive, and how.
public struct PeriodicTrainRequest: Hashable, Sendable {
    /// The advertiser's address, as scans receive it.
    public var address: DeviceAddress
    /// The identifier of the advertising set that announces the train: 0 to 15.
    public var sid: UInt8
    /// Maximum number of events that the controller may leave out after one that it has received: 0 to 499.
    public var skip: UInt16
    /// The time without an event after which the train counts as lost: 100 ms to 163.84 s, in steps of 10 ms.
    public var timeout: Duration
    /// The subevents to receive, 0 to 127 each; empty for a train without subevents.
    public var subevents: [UInt8]
    /// Whether each response has the transmit power.
    public var respondsWithTXPower: Bool

    /// Creates a request.
    public init(
        address: DeviceAddress,
        sid: UInt8,
        skip: UInt16 = 0,
        timeout: Duration = .seconds(10),
        subevents: [UInt8] = [],
        respondsWithTXPower: Bool = false
    ) {
        self.address = address
        self.sid = sid
        self.skip = skip
        self.timeout = timeout
        self.subevents = subevents
        self.respondsWithTXPower = respondsWithTXPower
    }

    /// Identifies the train.
    struct Train: Hashable {
        let address: DeviceAddress
        let sid: UInt8
    }

    var train: Train { Train(address: address, sid: sid) }

    /// Checks what the caller has chosen.
    ///
    /// - Throws: ``HostError/invalidArgument(_:)`` if a value is out of its range.
    func check() throws(HostError) {
        guard sid <= 0x0F else { throw .invalidArgument("the identifier of an advertising set is 0 to 15, not \(sid)") }
        try Self.check(skip: skip, timeout: timeout, subevents: subevents)
    }

    /// Checks how a train is received.
    static func check(skip: UInt16, timeout: Duration, subevents: [UInt8]) throws(HostError) {
        guard skip <= 499 else { throw .invalidArgument("at most 499 events can be left out, not \(skip)") }
        guard timeout >= .milliseconds(100), timeout <= .milliseconds(163_840) else {
            throw .invalidArgument("the timeout of a train is 100 ms to 163.84 s, not \(timeout)")
        }
        if let last = subevents.max(), last > 127 {
            throw .invalidArgument("a train has at most subevents 0 to 127, not \(last)")
        }
        guard Set(subevents).count == subevents.count else {
            throw .invalidArgument("a subevent is requested twice: \(subevents)")
        }
    }
}

/// The parameters of a received periodic advertising train.
public struct PeriodicTrain: Hashable, Sendable {
    /// The time between two events: 7.5 ms to 81.91875 s.
    public let interval: Duration
    /// The PHY of the events.
    public let phy: PHY
    /// The subevents; nil for a train without subevents. They are known only if the request names some.
    public let subevents: PeriodicSubeventTiming?

    init(interval: Duration, phy: PHY, subevents: PeriodicSubeventTiming? = nil) {
        self.interval = interval
        self.phy = phy
        self.subevents = subevents
    }
}

/// The data of one event of a periodic advertising train, or of one of its subevents.
public struct PeriodicAdvertisement: Sendable, Hashable {
    /// The AD structures, as they were received.
    public let data: AdvertisingData
    /// The signal strength in dBm: -127 to 20; nil if the controller does not know it.
    public let rssi: Int?
    /// The power at which the advertiser sends, in dBm; nil if it does not report it.
    public let txPower: Int?
    /// Whether a part of the data is missing.
    public let isTruncated: Bool
    /// When the event was received, on the host's clock.
    public let time: Instant
    /// The event and the subevent; nil unless the controller reports them, which a request with subevents enables.
    public let place: PeriodicPlace?
    /// The synchronization that has received it.
    package let synchronization: SynchronizationIdentifier
}

/// An event of a synchronization with a periodic advertising train.
package enum SynchronizationEvent: Sendable {
    case synchronized(PeriodicTrain)
    case report(PeriodicAdvertisement)
    /// The controller has received no packet in a chosen subevent.
    case missed(PeriodicPlace)
    case lost
    case ended(HostError)
}
