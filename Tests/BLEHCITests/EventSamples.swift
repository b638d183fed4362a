import BLEHCI
import BluetoothTypes

/// Events of fixed length, each with its packet.
let eventSamples = generalEventSamples + channelSoundingEventSamples + leIsochronousEventSamples

private let generalEventSamples: [EventSample] = [
    EventSample(
        DisconnectionComplete(connectionHandle: 0x0040, reason: .connectionTimeout),
        "050400400008"
    ),
    EventSample(
        EncryptionChange(connectionHandle: 0x0040, encryptionEnabled: .on),
        "080400400001"
    ),
    EventSample(
        EncryptionChangeV2(connectionHandle: 0x0040, encryptionEnabled: .on, encryptionKeySize: 16),
        "59050040000110"
    ),
    EventSample(
        EncryptionKeyRefreshComplete(status: .pinOrKeyMissing, connectionHandle: 0x0040),
        "3003064000"
    ),
    EventSample(
        AuthenticatedPayloadTimeoutExpired(connectionHandle: 0x0040),
        "57024000"
    ),
    EventSample(
        ReadRemoteVersionInformationComplete(
            connectionHandle: 0x0040,
            version: .v54,
            companyIdentifier: 0x004C,
            subversion: 0x1234
        ),
        "0c080040000d4c003412"
    ),
    EventSample(
        CommandStatus(status: .commandDisallowed, numHCICommandPackets: 3, commandOpcode: LEConnectionUpdate.opcode),
        "0f040c031320"
    ),
    EventSample(
        HardwareError(hardwareCode: 0x42),
        "100142"
    ),
    EventSample(
        DataBufferOverflow(linkType: .acl),
        "1a0101"
    ),
    EventSample(
        LEConnectionComplete(
            connectionHandle: 0x0040,
            role: .peripheral,
            peerAddress: PeerAddress(DeviceAddress(0xF012_3456_789A, isRandom: true)),
            connectionInterval: 24,
            peripheralLatency: 2,
            supervisionTimeout: 500,
            centralClockAccuracy: 5
        ),
        "3e130100400001019a78563412f018000200f40105"
    ),
    EventSample(
        LEConnectionUpdateComplete(
            connectionHandle: 0x0040,
            connectionInterval: 24,
            peripheralLatency: 2,
            supervisionTimeout: 500
        ),
        "3e0a0300400018000200f401"
    ),
    EventSample(
        LEReadRemoteFeaturesComplete(
            connectionHandle: 0x0040,
            leFeatures: [.encryption, .le2MPHY, .connectionSubrating]
        ),
        "3e0c040040000101000020000000"
    ),
    EventSample(
        LELongTermKeyRequest(
            connectionHandle: 0x0040,
            randomNumber: 0x1122_3344_5566_7788,
            encryptedDiversifier: 0xABCD
        ),
        "3e0d0540008877665544332211cdab"
    ),
    EventSample(
        LERemoteConnectionParameterRequest(
            connectionHandle: 0x0040,
            intervalMin: 6,
            intervalMax: 12,
            maxLatency: 1,
            timeout: 200
        ),
        "3e0b06400006000c000100c800"
    ),
    EventSample(
        LEDataLengthChange(
            connectionHandle: 0x0040,
            maxTXOctets: 251,
            maxTXTime: 2120,
            maxRXOctets: 27,
            maxRXTime: 328
        ),
        "3e0b074000fb0048081b004801"
    ),
    EventSample(
        LEEnhancedConnectionComplete(
            connectionHandle: 0x0040,
            role: .central,
            peerAddress: PeerAddress(type: .randomIdentity, value: 0xF012_3456_789A),
            localResolvablePrivateAddress: DeviceAddress(0x4A11_2233_4455, isRandom: true),
            peerResolvablePrivateAddress: DeviceAddress(0x7B66_7788_9900, isRandom: true),
            connectionInterval: 24,
            peripheralLatency: 2,
            supervisionTimeout: 500,
            centralClockAccuracy: 5
        ),
        "3e1f0a00400000039a78563412f055443322114a00998877667b18000200f40105"
    ),
    EventSample(
        LEEnhancedConnectionCompleteV2(
            connectionHandle: 0x0040,
            role: .central,
            peerAddress: PeerAddress(DeviceAddress(0xF012_3456_789A, isRandom: true)),
            connectionInterval: 24,
            peripheralLatency: 2,
            supervisionTimeout: 500,
            centralClockAccuracy: 5,
            advertisingHandle: 7,
            syncHandle: 0x0123
        ),
        "3e222900400000019a78563412f000000000000000000000000018000200f40105072301"
    ),
    EventSample(
        LEPHYUpdateComplete(connectionHandle: 0x0040, txPHY: .le2M, rxPHY: .leCoded),
        "3e060c0040000203"
    ),
    EventSample(
        LEPeriodicAdvertisingSyncEstablished(
            syncHandle: 0x0123,
            advertisingSID: 9,
            advertiserAddress: PeerAddress(DeviceAddress(0xF012_3456_789A, isRandom: true)),
            advertiserPHY: .le2M,
            periodicAdvertisingInterval: 0x0050,
            advertiserClockAccuracy: 4
        ),
        "3e100e00230109019a78563412f002500004"
    ),
    EventSample(
        LEPeriodicAdvertisingSyncLost(syncHandle: 0x0123),
        "3e03102301"
    ),
    EventSample(
        LEPeriodicAdvertisingSyncTransferReceived(
            connectionHandle: 0x0040,
            serviceData: 0x5678,
            syncHandle: 0x0123,
            advertisingSID: 9,
            advertiserAddress: PeerAddress(DeviceAddress(0xF012_3456_789A, isRandom: true)),
            advertiserPHY: .le2M,
            periodicAdvertisingInterval: 0x0050,
            advertiserClockAccuracy: 4
        ),
        "3e14180040007856230109019a78563412f002500004"
    ),
    EventSample(
        LEPeriodicAdvertisingSyncEstablishedV2(
            syncHandle: 0x0123,
            advertisingSID: 9,
            advertiserAddress: PeerAddress(DeviceAddress(0xF012_3456_789A, isRandom: true)),
            advertiserPHY: .le2M,
            periodicAdvertisingInterval: 0x0050,
            advertiserClockAccuracy: 4,
            numSubevents: 5,
            subeventInterval: 16,
            responseSlotDelay: 4,
            responseSlotSpacing: 8
        ),
        "3e142400230109019a78563412f00250000405100408"
    ),
    EventSample(
        LEPeriodicAdvertisingSyncTransferReceivedV2(
            connectionHandle: 0x0040,
            serviceData: 0x5678,
            syncHandle: 0x0123,
            advertisingSID: 9,
            advertiserAddress: PeerAddress(DeviceAddress(0xF012_3456_789A, isRandom: true)),
            advertiserPHY: .le2M,
            periodicAdvertisingInterval: 0x0050,
            advertiserClockAccuracy: 4,
            numSubevents: 5,
            subeventInterval: 16,
            responseSlotDelay: 4,
            responseSlotSpacing: 8
        ),
        "3e18260040007856230109019a78563412f00250000405100408"
    ),
    EventSample(
        LEPeriodicAdvertisingSubeventDataRequest(advertisingHandle: 3, subeventStart: 4, subeventDataCount: 2),
        "3e0427030402"
    ),
    EventSample(
        LEScanTimeout(),
        "3e0111"
    ),
    EventSample(
        LEAdvertisingSetTerminated(
            status: .advertisingTimeout,
            advertisingHandle: 3,
            connectionHandle: 0x0040,
            numCompletedExtendedAdvertisingEvents: 7
        ),
        "3e06123c03400007"
    ),
    EventSample(
        LEScanRequestReceived(
            advertisingHandle: 3,
            scannerAddress: PeerAddress(DeviceAddress(0xF012_3456_789A, isRandom: true))
        ),
        "3e091303019a78563412f0"
    ),
    EventSample(
        LEChannelSelectionAlgorithm(connectionHandle: 0x0040, channelSelectionAlgorithm: 1),
        "3e0414400001"
    ),
    EventSample(
        LESubrateChange(
            connectionHandle: 0x0040,
            subrateFactor: 0x0102,
            peripheralLatency: 1,
            continuationNumber: 3,
            supervisionTimeout: 500
        ),
        "3e0c23004000020101000300f401"
    ),
    EventSample(
        LEPathLossThreshold(connectionHandle: 0x0040, currentPathLoss: 77, zoneEntered: .high),
        "3e052040004d02"
    ),
    EventSample(
        LETransmitPowerReporting(
            connectionHandle: 0x0040,
            reason: .remoteRead,
            phy: .leCoded,
            txPowerLevel: -12,
            txPowerLevelFlag: .maximum,
            delta: -4
        ),
        "3e0921004000" + "0203f402fc"
    ),
    EventSample(
        LEReadAllRemoteFeaturesComplete(
            connectionHandle: 0x0040,
            maxRemotePage: 3,
            maxValidPage: 2,
            leFeatures: LEFeaturePages(featureBytes)
        ),
        "3efe2b0040000302" + featureBytes.hexadecimal
    ),
    EventSample(
        LEMonitoredAdvertisersReport(address: PeerAddress(type: .random, value: 0xF012_3456_789A), condition: 1),
        "3e0934019a78563412f001"
    ),
    EventSample(
        LEFrameSpaceUpdateComplete(
            connectionHandle: 0x0040,
            initiator: 2,
            frameSpace: 100,
            phys: .le2M,
            spacingTypes: [.tMCES, .tIFSCIS]
        ),
        "3e0a35004000026400020c00"
    ),
]
