import BLEHCI
import BluetoothTypes

/// An advertising set: the parameters and data of one advertising handle.
struct AdvertisingSet {
    /// The parameters of legacy or extended advertising.
    struct Parameters {
        var properties: AdvertisingEventProperties
        /// In units of 0.625 ms.
        var interval: UInt32
        var ownAddressType: OwnAddressType
        var peerAddress: DeviceAddress
        var filterPolicy: AdvertisingFilterPolicy
        /// The selected power, in dBm.
        var transmitPower: Int8
        var primaryPHY: PHY
        var secondaryPHY: PHY
        /// Whether the LE Coded PHY is used with S=2 coding.
        var usesS2 = (primary: false, secondary: false)
        var sid: UInt8
        var notifiesOfScanRequests: Bool

        /// The PHYs with their codings.
        var airPHYs: (primary: PHY, secondary: PHY) {
            (usesS2.primary ? .leCodedS2 : primaryPHY, usesS2.secondary ? .leCodedS2 : secondaryPHY)
        }
        var usesLegacyPDUs: Bool { properties.contains(.useLegacyPDUs) }
        var isHighDutyCycle: Bool { properties.contains(.highDutyCycleDirectedConnectable) }
        /// A directed legacy PDU has no data. A scannable extended advertisement has data only in its scan response.
        var supportsData: Bool { !properties.contains(usesLegacyPDUs ? .directed : .scannable) }
        /// Maximum number of data bytes of connectable extended PDUs, which have no chain; nil for other PDUs.
        ///
        /// AUX_ADV_IND has the advertiser's address and the ADI field, and may have the transmit power and the target's
        /// address (Vol 6, Part B, 2.3.1.6).
        var connectableDataLimit: Int? {
            guard !usesLegacyPDUs, properties.contains(.connectable) else { return nil }
            return AdvertisingPayload.bytesPerPDU - (properties.contains(.includeTXPower) ? 1 : 0)
                - (properties.contains(.directed) ? 6 : 0)
        }
        /// Periodic advertising requires extended advertising that names the advertiser and accepts no requests.
        var supportsPeriodicAdvertising: Bool {
            properties.isDisjoint(with: [.connectable, .scannable, .useLegacyPDUs, .omitAdvertiserAddress])
        }

        /// The interval of high duty cycle directed advertising is at most 3.75 ms (Vol 6, Part B, 4.4.2.4.3).
        var intervalDuration: Duration {
            isHighDutyCycle ? .microseconds(3750) : .microseconds(625 * Int(interval))
        }
    }

    /// The state of enabled advertising.
    struct Run {
        let number: UInt64
        /// Nil without a limit.
        let maximumEvents: Int?
        var completedEvents = 0
    }

    let handle: UInt8
    var parameters: Parameters
    /// The address of this set, for extended advertising.
    var randomAddress: DeviceAddress?
    var data = AdvertisingPayload()
    var scanResponse = AdvertisingPayload()
    /// Distinguishes data from other data of the set (Vol 6, Part B, 2.3.4.4).
    var dataIdentifier: UInt16 = 0
    var run: Run?
    /// Fires when the next advertising event is due.
    let eventTimer = Air.Timer()
    /// Fires when the duration of advertising has passed.
    let durationTimer = Air.Timer()
    var train: PeriodicTrain?

    var isEnabled: Bool { run != nil }

    /// Whether connectable extended PDUs have no room for the data.
    var needsChainToConnect: Bool {
        parameters.connectableDataLimit.map { data.bytes.count > $0 } ?? false
    }

    /// Whether the air time of the data exceeds the time between two events.
    var isTooLong: Bool {
        guard !parameters.usesLegacyPDUs else { return false }
        let longest = max(
            data.airTime(phy: parameters.airPHYs.secondary),
            scanResponse.airTime(phy: parameters.airPHYs.secondary)
        )
        return .microseconds(longest) > parameters.intervalDuration
    }
}

/// The advertising sets of a controller.
struct Advertiser {
    /// The set of commands that the host has used since the reset of the controller.
    var commands: AdvertisingCommands?
    /// The sets in the order of their creation. Legacy commands create one set with the handle zero.
    var sets: [AdvertisingSet] = []
    private var lastRun: UInt64 = 0
    private var lastDataIdentifier: UInt16 = 0

    var isAdvertising: Bool { sets.contains(where: \.isEnabled) }

    func index(of handle: UInt8) -> Int? { sets.firstIndex { $0.handle == handle } }

    mutating func nextRun() -> UInt64 {
        lastRun += 1
        return lastRun
    }

    /// Returns a 12-bit number that no set has had recently.
    mutating func nextDataIdentifier() -> UInt16 {
        lastDataIdentifier = (lastDataIdentifier + 1) & 0x0FFF
        return lastDataIdentifier
    }
}
