/// The operations that legacy advertising allows others (Vol 4, Part E, 7.8.5).
public enum AdvertisingType: UInt8, Sendable {
    /// ADV_IND.
    case connectableScannableUndirected = 0x00
    /// ADV_DIRECT_IND, high duty cycle.
    case connectableHighDutyCycleDirected = 0x01
    /// ADV_SCAN_IND.
    case scannableUndirected = 0x02
    /// ADV_NONCONN_IND.
    case nonConnectableUndirected = 0x03
    /// ADV_DIRECT_IND, low duty cycle.
    case connectableLowDutyCycleDirected = 0x04
}

/// The primary channels for advertising (Vol 4, Part E, 7.8.5).
public struct AdvertisingChannelMap: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Channel 37, at 2402 MHz.
    public static let channel37 = AdvertisingChannelMap(rawValue: 1 << 0)
    /// Channel 38, at 2426 MHz.
    public static let channel38 = AdvertisingChannelMap(rawValue: 1 << 1)
    /// Channel 39, at 2480 MHz.
    public static let channel39 = AdvertisingChannelMap(rawValue: 1 << 2)
    /// All three primary channels.
    public static let all: AdvertisingChannelMap = [.channel37, .channel38, .channel39]
}

/// The devices from which an advertiser accepts requests (Vol 4, Part E, 7.8.5).
public enum AdvertisingFilterPolicy: UInt8, Sendable {
    /// Scan and connection requests from all devices.
    case all = 0x00
    /// Scan requests from the filter accept list only.
    case scanRequestsFromFilterAcceptList = 0x01
    /// Connection requests from the filter accept list only.
    case connectionRequestsFromFilterAcceptList = 0x02
    /// Scan and connection requests from the filter accept list only.
    case filterAcceptListOnly = 0x03
}

/// The operations that extended advertising allows others, and the contents of its PDUs (Vol 4, Part E, 7.8.53).
public struct AdvertisingEventProperties: OptionSet, Hashable, Sendable {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// A device may request a connection.
    public static let connectable = AdvertisingEventProperties(rawValue: 1 << 0)
    /// A device may request a scan response.
    public static let scannable = AdvertisingEventProperties(rawValue: 1 << 1)
    /// The advertising is for one device only.
    public static let directed = AdvertisingEventProperties(rawValue: 1 << 2)
    /// The advertising is for one device, with an interval of at most 3.75 ms.
    public static let highDutyCycleDirectedConnectable = AdvertisingEventProperties(rawValue: 1 << 3)
    /// Legacy PDUs are used: at most 31 bytes of data, heard by devices before Bluetooth 5.
    public static let useLegacyPDUs = AdvertisingEventProperties(rawValue: 1 << 4)
    /// No PDU contains the advertiser's address: anonymous advertising.
    public static let omitAdvertiserAddress = AdvertisingEventProperties(rawValue: 1 << 5)
    /// The extended header contains the transmit power.
    public static let includeTXPower = AdvertisingEventProperties(rawValue: 1 << 6)
    /// Decision PDUs are used, which scanners filter by their decision data.
    public static let useDecisionPDUs = AdvertisingEventProperties(rawValue: 1 << 7)
    /// The extended header of all decision PDUs contains the advertiser's address.
    public static let includeAdvAInDecisionPDUs = AdvertisingEventProperties(rawValue: 1 << 8)
    /// The extended header of all decision PDUs contains the ADI field.
    public static let includeADIInDecisionPDUs = AdvertisingEventProperties(rawValue: 1 << 9)
}

/// Whether a scanner requests scan responses (Vol 4, Part E, 7.8.10).
public enum ScanType: UInt8, Sendable {
    /// The scanner only listens.
    case passive = 0x00
    /// The scanner requests the scan response of each scannable advertiser.
    case active = 0x01
}

/// The advertisers that a scanner reports (Vol 4, Part E, 7.8.10 and 7.8.64; Vol 6, Part B, 4.3.3).
///
/// Only ``LESetExtendedScanParameters`` can have the policies with decision PDUs. The others ignore decision PDUs.
public enum ScanningFilterPolicy: UInt8, Sendable {
    /// All advertisers, except directed advertising for another device.
    case basicUnfiltered = 0x00
    /// Advertisers on the filter accept list, except directed advertising for another device.
    case basicFiltered = 0x01
    /// As ``basicUnfiltered``, and directed advertising for any resolvable private address.
    case extendedUnfiltered = 0x02
    /// As ``basicFiltered``, and directed advertising for any resolvable private address.
    case extendedFiltered = 0x03
    /// As ``basicUnfiltered``, and decision PDUs that pass the decision instructions.
    case basicUnfilteredAllPDUs = 0x04
    /// As ``basicFiltered``, and decision PDUs that pass the decision instructions.
    case basicFilteredAllPDUs = 0x05
    /// As ``extendedUnfiltered``, and decision PDUs that pass the decision instructions.
    case extendedUnfilteredAllPDUs = 0x06
    /// As ``extendedFiltered``, and decision PDUs that pass the decision instructions.
    case extendedFilteredAllPDUs = 0x07
    /// As ``basicUnfilteredAllPDUs``, but only decision PDUs.
    case basicUnfilteredDecisionPDUs = 0x0C
    /// As ``basicFilteredAllPDUs``, but only decision PDUs.
    case basicFilteredDecisionPDUs = 0x0D
    /// As ``extendedUnfilteredAllPDUs``, but only decision PDUs.
    case extendedUnfilteredDecisionPDUs = 0x0E
    /// As ``extendedFilteredAllPDUs``, but only decision PDUs.
    case extendedFilteredDecisionPDUs = 0x0F
}

/// Whether an advertiser is reported repeatedly (Vol 4, Part E, 7.8.65).
public enum DuplicateFilter: UInt8, Sendable {
    /// Every received packet is reported.
    case disabled = 0x00
    /// Repeated advertising of a device is reported once while the scan lasts, as far as the controller remembers it.
    case enabled = 0x01
    /// Once in each scan period.
    case resetEachPeriod = 0x02
}

/// The devices that an initiator connects to (Vol 4, Part E, 7.8.12 and 7.8.66).
///
/// ``LECreateConnection`` can have only the first two policies, which ignore decision PDUs.
public enum InitiatorFilterPolicy: UInt8, Sendable {
    /// The device whose address the command has.
    case peerAddress = 0x00
    /// Any device on the filter accept list.
    case filterAcceptList = 0x01
    /// Any device whose decision PDU passes the decision instructions.
    case decisionPDUs = 0x02
    /// Any device on the filter accept list, also by a decision PDU that passes the decision instructions.
    case filterAcceptListAllPDUs = 0x03
    /// Any device whose decision PDU passes the decision instructions, and by its other PDUs any device on the filter
    /// accept list.
    case decisionPDUsOrFilterAcceptList = 0x04
}

/// The part of an advertising set's data in a command (Vol 4, Part E, 7.8.54).
public enum AdvertisingDataOperation: UInt8, Sendable {
    /// A part of the data that is neither the first nor the last.
    case intermediateFragment = 0x00
    /// The first part of the data, which replaces the former data.
    case firstFragment = 0x01
    /// The last part of the data, which is used from then on.
    case lastFragment = 0x02
    /// The whole data.
    case complete = 0x03
    /// The data stays; only its identifier changes.
    case unchanged = 0x04
}

/// Whether the controller may split advertising data over several PDUs (Vol 4, Part E, 7.8.54).
public enum FragmentPreference: UInt8, Sendable {
    /// The controller may split the data as it likes.
    case mayFragment = 0x00
    /// The controller should split the data as little as possible.
    case shouldNotFragment = 0x01
}

/// The part of the advertiser's data in a report (Vol 4, Part E, 7.7.65.13 and 7.7.65.15).
public struct DataStatus: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The report has all data, or the last part of it.
    public static let complete = DataStatus(rawValue: 0b00)
    /// More data follows in further reports.
    public static let incompleteMoreToCome = DataStatus(rawValue: 0b01)
    /// The rest was not received.
    public static let truncated = DataStatus(rawValue: 0b10)
    /// In a periodic advertising report of version 2: nothing was received.
    public static let failedToReceive = DataStatus(rawValue: 0xFF)
}
