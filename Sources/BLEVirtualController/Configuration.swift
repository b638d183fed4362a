import BLEHCI
import BluetoothTypes

extension VirtualController {
    /// The properties of a controller.
    ///
    /// A controller replaces values out of their ranges by the nearest allowed ones.
    public struct Configuration: Sendable {
        /// The public device address.
        public var address: DeviceAddress
        /// Maximum number of data bytes in an ACL packet from the host, 27 to 65,535.
        public var aclDataLength: UInt16
        /// Maximum number of ACL packets from the host that the controller buffers.
        public var aclPacketCount: UInt8
        /// Maximum number of devices on the filter accept list.
        public var filterAcceptListSize: UInt8
        /// Maximum number of devices on the resolving list.
        public var resolvingListSize: UInt8
        /// The number of advertising sets, 1 to 240.
        public var advertisingSetCount: UInt8
        /// Maximum number of data bytes of an advertising set or a periodic train, 31 to 1,650.
        public var maximumAdvertisingDataLength: UInt16
        /// Maximum number of simultaneous links, 1 to 3,584.
        public var maximumLinks: Int
        /// The supported features. Commands that need a missing feature are unknown to the controller.
        public var features: LEFeatures
        /// The transmit power, -127 to 20 dBm. On links, it is the greatest power.
        public var transmitPower: Int8
        /// The least transmit power on links, -127 dBm to ``transmitPower``.
        public var minimumTransmitPower: Int8
        /// The initial position.
        public var position: Position
        /// Whether packets wait for connection events and take the air time of their PHY. Otherwise links forward
        /// packets at once, which benchmarks hosts rather than radios.
        public var pacesPackets: Bool

        /// Creates a configuration. Values out of their ranges are replaced by the nearest allowed ones.
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
            minimumTransmitPower: Int8? = nil,
            position: Position = .origin,
            pacesPackets: Bool = true
        ) {
            self.address = address
            self.aclDataLength = aclDataLength
            self.aclPacketCount = aclPacketCount
            self.filterAcceptListSize = filterAcceptListSize
            self.resolvingListSize = resolvingListSize
            self.advertisingSetCount = advertisingSetCount
            self.maximumAdvertisingDataLength = maximumAdvertisingDataLength
            self.maximumLinks = maximumLinks
            self.features = features
            self.transmitPower = transmitPower
            self.minimumTransmitPower = minimumTransmitPower ?? transmitPower
            self.position = position
            self.pacesPackets = pacesPackets
            self = limited
        }

        /// The configuration with all values in their ranges.
        var limited: Configuration {
            var limited = self
            limited.aclDataLength = max(27, aclDataLength)
            limited.aclPacketCount = max(1, aclPacketCount)
            limited.advertisingSetCount = max(1, min(advertisingSetCount, 0xF0))
            limited.maximumAdvertisingDataLength = max(31, min(maximumAdvertisingDataLength, 1650))
            limited.maximumLinks = max(1, min(maximumLinks, 0x0E00))
            limited.transmitPower = max(-127, min(transmitPower, 20))
            limited.minimumTransmitPower = max(-127, min(minimumTransmitPower, limited.transmitPower))
            return limited
        }
    }

    /// Counters of HCI traffic since the controller was created.
    public struct Statistics: Hashable, Sendable {
        /// Commands received from the host.
        public var commands: UInt64 = 0
        /// Commands received while an earlier one was unanswered, although a host may have only one outstanding
        /// command.
        public var commandsBeyondCredit: UInt64 = 0
        /// ACL packets received while all buffers were full. They were dropped.
        public var packetsBeyondCredit: UInt64 = 0
        /// Malformed packets, and ACL packets that have no link or too many bytes. All are dropped.
        public var malformedPackets: UInt64 = 0
        /// ACL packets received from the host.
        public var aclPacketsFromHost: UInt64 = 0
        /// ACL packets sent to the host.
        public var aclPacketsToHost: UInt64 = 0
        /// ISO packets received from the host.
        public var isoPacketsFromHost: UInt64 = 0
        /// ISO packets sent to the host.
        public var isoPacketsToHost: UInt64 = 0
        /// ACL packets whose buffers were returned to the host.
        public var packetsCompleted: UInt64 = 0

        /// Creates counters that are zero.
        public init() {}
    }
}

extension LEFeatures {
    /// All features of the software controller.
    public static let all: LEFeatures = [
        .encryption, .connectionParametersRequestProcedure, .extendedRejectIndication,
        .peripheralInitiatedFeaturesExchange, .ping, .dataPacketLengthExtension, .llPrivacy,
        .extendedScanningFilterPolicies,
        .le2MPHY, .leCodedPHY, .extendedAdvertising, .periodicAdvertising, .channelSelectionAlgorithm2,
        .periodicAdvertisingSyncTransferSender, .periodicAdvertisingSyncTransferRecipient,
        .powerControlRequest, .pathLossMonitoring, .connectionSubrating, .advertisingCodingSelection,
        .periodicAdvertisingWithResponsesAdvertiser, .periodicAdvertisingWithResponsesScanner,
        .connectedIsochronousStreamCentral, .connectedIsochronousStreamPeripheral, .channelSounding,
        .isochronousBroadcaster, .synchronizedReceiver,
    ]

    /// The features of a Bluetooth 4.2 controller: no extended advertising, one PHY.
    public static let bluetooth42: LEFeatures = [
        .encryption, .connectionParametersRequestProcedure, .extendedRejectIndication,
        .peripheralInitiatedFeaturesExchange, .ping, .dataPacketLengthExtension, .llPrivacy,
        .extendedScanningFilterPolicies,
    ]

    /// The features for streams that are sent; a controller with one of them has the commands for their data.
    static let sentStreams: LEFeatures = [
        .connectedIsochronousStreamCentral, .connectedIsochronousStreamPeripheral, .isochronousBroadcaster,
    ]
    /// The features for streams, sent or received.
    static let streams: LEFeatures = sentStreams.union(.synchronizedReceiver)
}
