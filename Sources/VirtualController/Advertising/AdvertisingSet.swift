import BluetoothTypes
import HCI

/// What is advertised under one handle, and how.
struct AdvertisingSet {
    /// How it is advertised, whichever commands said so.
    struct Parameters {
        var properties: AdvertisingEventProperties
        /// In units of 0.625 ms.
        var interval: UInt32
        var ownAddressType: OwnAddressType
        var peerAddress: DeviceAddress
        var filterPolicy: AdvertisingFilterPolicy
        /// In dBm, what was selected.
        var transmitPower: Int8
        var primaryPHY: PHY
        var secondaryPHY: PHY
        var sid: UInt8
        var notifiesOfScanRequests: Bool

        var usesLegacyPDUs: Bool { properties.contains(.useLegacyPDUs) }
        var isHighDutyCycle: Bool { properties.contains(.highDutyCycleDirectedConnectable) }
        /// A legacy PDU that is directed has no place for data; an extended one that asks to be scanned brings them in the
        /// response only.
        var supportsData: Bool { !properties.contains(usesLegacyPDUs ? .directed : .scannable) }
        /// Periodic advertising hangs on extended advertising that names the advertiser and takes no requests.
        var supportsPeriodicAdvertising: Bool {
            properties.isDisjoint(with: [.connectable, .scannable, .useLegacyPDUs, .omitAdvertiserAddress])
        }

        /// High duty cycle directed advertising has at most 3.75 ms between its events (Vol 6, Part B, 4.4.2.4.3).
        var intervalDuration: Duration {
            isHighDutyCycle ? .microseconds(3750) : .microseconds(625 * Int(interval))
        }
    }

    /// Advertising that goes on.
    struct Run {
        let number: UInt64
        /// Nil where there is no end.
        let maximumEvents: Int?
        var completedEvents = 0
    }

    let handle: UInt8
    var parameters: Parameters
    /// Set for extended advertising, which has an address for each set.
    var randomAddress: DeviceAddress?
    var data = AdvertisingPayload()
    var scanResponse = AdvertisingPayload()
    /// Tells data from other data of the set (Vol 6, Part B, 2.3.4.4).
    var dataIdentifier: UInt16 = 0
    var run: Run?
    var train: PeriodicTrain?

    var isEnabled: Bool { run != nil }

    /// Whether its data take longer to send than there is time between its events.
    var isTooLong: Bool {
        guard !parameters.usesLegacyPDUs else { return false }
        let longest = max(
            data.airTime(phy: parameters.secondaryPHY),
            scanResponse.airTime(phy: parameters.secondaryPHY)
        )
        return .microseconds(longest) > parameters.intervalDuration
    }
}

/// The advertising sets of a controller.
struct Advertiser {
    /// Which commands the host has used since the controller was reset.
    var commands: AdvertisingCommands?
    /// In the order in which they were made. Legacy commands make one, of handle zero.
    var sets: [AdvertisingSet] = []
    private var lastRun: UInt64 = 0
    private var lastDataIdentifier: UInt16 = 0

    var isAdvertising: Bool { sets.contains(where: \.isEnabled) }

    func index(of handle: UInt8) -> Int? { sets.firstIndex { $0.handle == handle } }

    mutating func nextRun() -> UInt64 {
        lastRun += 1
        return lastRun
    }

    /// A number of 12 bits that no set has had lately.
    mutating func nextDataIdentifier() -> UInt16 {
        lastDataIdentifier = (lastDataIdentifier + 1) & 0x0FFF
        return lastDataIdentifier
    }
}
