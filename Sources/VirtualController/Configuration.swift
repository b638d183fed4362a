import BluetoothTypes
import HCI

extension VirtualController {
    /// What kind of controller it is.
    public struct Configuration: Sendable {
        /// Its public device address.
        public var address: DeviceAddress
        /// How many octets of data an ACL packet of the host may have, 27 to 65,535.
        public var aclDataLength: UInt16
        /// How many ACL packets of the host the controller holds.
        public var aclPacketCount: UInt8
        public var filterAcceptListSize: UInt8
        public var resolvingListSize: UInt8
        /// How many advertising sets there are.
        public var advertisingSetCount: UInt8
        /// How many octets of data an advertising set or a periodic train may have, 31 to 1,650.
        public var maximumAdvertisingDataLength: UInt16
        /// How many links there may be at once.
        public var maximumLinks: Int
        /// What it can do; commands of what is missing here are unknown to it.
        public var features: LEFeatures
        /// In dBm.
        public var transmitPower: Int8
        /// Where it is at first.
        public var position: Position
        /// Whether packets wait for connection events and take the air time of their PHY. Otherwise links forward at once,
        /// which measures hosts rather than radios.
        public var pacesPackets: Bool

        public init(
            address: DeviceAddress,
            aclDataLength: UInt16 = 251,
            aclPacketCount: UInt8 = 8,
            filterAcceptListSize: UInt8 = 16,
            resolvingListSize: UInt8 = 16,
            advertisingSetCount: UInt8 = 16,
            maximumAdvertisingDataLength: UInt16 = 1650,
            maximumLinks: Int = 64,
            features: LEFeatures = .all,
            transmitPower: Int8 = 0,
            position: Position = .origin,
            pacesPackets: Bool = true
        ) {
            self.address = address
            self.aclDataLength = max(27, aclDataLength)
            self.aclPacketCount = max(1, aclPacketCount)
            self.filterAcceptListSize = filterAcceptListSize
            self.resolvingListSize = resolvingListSize
            self.advertisingSetCount = max(1, advertisingSetCount)
            self.maximumAdvertisingDataLength = max(31, min(1650, maximumAdvertisingDataLength))
            self.maximumLinks = max(1, min(maximumLinks, 0x0E00))
            self.features = features
            self.transmitPower = transmitPower
            self.position = position
            self.pacesPackets = pacesPackets
        }
    }

    /// What has gone over HCI since the controller was made.
    public struct Statistics: Hashable, Sendable {
        public var commands: UInt64 = 0
        /// Commands that came while an earlier one was unanswered, though a host may have one command on the way.
        public var commandsBeyondCredit: UInt64 = 0
        /// ACL packets that came while all buffers were full, and were dropped.
        public var packetsBeyondCredit: UInt64 = 0
        /// Packets of the host that are none, and ACL packets for no link or of more octets than allowed; all are dropped.
        public var malformedPackets: UInt64 = 0
        public var aclPacketsFromHost: UInt64 = 0
        public var aclPacketsToHost: UInt64 = 0
        /// ACL packets whose buffers were given back to the host.
        public var packetsCompleted: UInt64 = 0

        public init() {}
    }
}

extension LEFeatures {
    /// All that a software controller can do.
    public static let all: LEFeatures = [
        .encryption, .connectionParametersRequestProcedure, .extendedRejectIndication,
        .peripheralInitiatedFeaturesExchange, .ping, .dataPacketLengthExtension, .llPrivacy,
        .extendedScanningFilterPolicies,
        .le2MPHY, .leCodedPHY, .extendedAdvertising, .periodicAdvertising, .channelSelectionAlgorithm2,
    ]

    /// What a controller of Bluetooth 4.2 can do: no extended advertising, one PHY.
    public static let bluetooth42: LEFeatures = [
        .encryption, .connectionParametersRequestProcedure, .extendedRejectIndication,
        .peripheralInitiatedFeaturesExchange, .ping, .dataPacketLengthExtension, .llPrivacy,
        .extendedScanningFilterPolicies,
    ]
}
