import BLEHCI
import BluetoothTypes

/// Scanning and connection commands, each with its packet.
let leConnectionCommandSamples: [CommandSample] = [
    CommandSample(
        LESetScanParameters(
            leScanType: .active,
            leScanInterval: 0x0060,
            leScanWindow: 0x0030,
            ownAddressType: .random,
            scanningFilterPolicy: .extendedFiltered
        ),
        "0b200701600030000103"
    ),
    CommandSample(
        LESetScanEnable(leScanEnable: true, filterDuplicates: true),
        "0c20020101"
    ),
    CommandSample(
        LESetExtendedScanParameters(
            ownAddressType: .random,
            scanningFilterPolicy: .basicFiltered,
            le1M: .init(scanType: .active, scanInterval: 0x0102, scanWindow: 0x0101),
            leCoded: .init(scanType: .passive, scanInterval: 0x0202, scanWindow: 0x0201)
        ),
        "41200d01010501020101010002020102"
    ),
    CommandSample(
        LESetExtendedScanParameters(
            ownAddressType: .random,
            scanningFilterPolicy: .extendedFilteredAllPDUs,
            le1M: .init(scanType: .active, scanInterval: 0x0102, scanWindow: 0x0101)
        ),
        "4120080107010102010101"
    ),
    CommandSample(
        LESetExtendedScanEnable(enable: true, filterDuplicates: .resetEachPeriod, duration: 0x0203, period: 0x0405),
        "422006010203020504"
    ),
    CommandSample(
        LECreateConnection(
            leScanInterval: 0x0060,
            leScanWindow: 0x0050,
            peerAddress: PeerAddress(DeviceAddress(0xF012_3456_789A, isRandom: true)),
            ownAddressType: .resolvableOrPublic,
            connectionIntervalMin: 6,
            connectionIntervalMax: 12,
            maxLatency: 1,
            supervisionTimeout: 200,
            minCELength: 3,
            maxCELength: 4
        ),
        "0d20196000500000019a78563412f00206000c000100c80003000400"
    ),
    CommandSample(
        LECreateConnectionCancel(),
        "0e2000"
    ),
    CommandSample(
        LEExtendedCreateConnection(
            ownAddressType: .random,
            peerAddress: DeviceAddress(0xF012_3456_789A, isRandom: true),
            le1M: .init(
                scanInterval: 0x0101,
                scanWindow: 0x0102,
                connectionIntervalMin: 0x0103,
                connectionIntervalMax: 0x0104,
                maxLatency: 0x0105,
                supervisionTimeout: 0x0106,
                minCELength: 0x0107,
                maxCELength: 0x0108
            ),
            leCoded: .init(
                scanInterval: 0x0301,
                scanWindow: 0x0302,
                connectionIntervalMin: 0x0303,
                connectionIntervalMax: 0x0304,
                maxLatency: 0x0305,
                supervisionTimeout: 0x0306,
                minCELength: 0x0307,
                maxCELength: 0x0308
            )
        ),
        "43202a0001019a78563412f0050101020103010401050106010701080101030203030304030503060307030803"
    ),
    CommandSample(
        LEExtendedCreateConnection(
            initiatorFilterPolicy: .decisionPDUsOrFilterAcceptList,
            peerAddress: DeviceAddress(0xF012_3456_789A, isRandom: true),
            le1M: .init(
                scanInterval: 0x0101,
                scanWindow: 0x0102,
                connectionIntervalMin: 0x0103,
                connectionIntervalMax: 0x0104,
                maxLatency: 0x0105,
                supervisionTimeout: 0x0106,
                minCELength: 0x0107,
                maxCELength: 0x0108
            )
        ),
        "43201a0400019a78563412f00101010201030104010501060107010801"
    ),
    CommandSample(
        LEReadFilterAcceptListSize(),
        "0f2000"
    ),
    CommandSample(
        LEClearFilterAcceptList(),
        "102000"
    ),
    CommandSample(
        LEAddDeviceToFilterAcceptList(address: PeerAddress(DeviceAddress(0xF012_3456_789A, isRandom: true))),
        "112007019a78563412f0"
    ),
    CommandSample(
        LEAddDeviceToFilterAcceptList(address: .anonymous),
        "112007ff000000000000"
    ),
    CommandSample(
        LERemoveDeviceFromFilterAcceptList(address: PeerAddress(DeviceAddress(0x001B_DC07_32EF, isRandom: false))),
        "12200700ef3207dc1b00"
    ),
    CommandSample(
        LEConnectionUpdate(
            connectionHandle: 0x0040,
            connectionIntervalMin: 6,
            connectionIntervalMax: 12,
            maxLatency: 1,
            supervisionTimeout: 200,
            minCELength: 3,
            maxCELength: 4
        ),
        "13200e400006000c000100c80003000400"
    ),
    CommandSample(
        LESetHostChannelClassification(channelMap: ChannelMap(rawValue: 0x12_3456_789A)),
        "1420059a78563412"
    ),
    CommandSample(
        LEReadChannelMap(connectionHandle: 0x0040),
        "1520024000"
    ),
    CommandSample(
        LEReadRemoteFeatures(connectionHandle: 0x0040),
        "1620024000"
    ),
    CommandSample(
        LEReadAllRemoteFeatures(connectionHandle: 0x0040, pagesRequested: 2),
        "882003400002"
    ),
    CommandSample(
        LEAddDeviceToMonitoredAdvertisersList(
            address: DeviceAddress(0xF012_3456_789A, isRandom: true),
            rssiThresholdLow: -80,
            rssiThresholdHigh: -60,
            timeout: 5
        ),
        "98200a019a78563412f0b0c405"
    ),
    CommandSample(
        LERemoveDeviceFromMonitoredAdvertisersList(address: DeviceAddress(0x001B_DC07_32EF, isRandom: false)),
        "99200700ef3207dc1b00"
    ),
    CommandSample(
        LEClearMonitoredAdvertisersList(),
        "9a2000"
    ),
    CommandSample(
        LEReadMonitoredAdvertisersListSize(),
        "9b2000"
    ),
    CommandSample(
        LEEnableMonitoringAdvertisers(enable: true),
        "9c200101"
    ),
    CommandSample(
        LEFrameSpaceUpdate(
            connectionHandle: 0x0040,
            frameSpaceMin: 0,
            frameSpaceMax: 150,
            phys: [.le1M, .le2M],
            spacingTypes: [.tIFSACLCP, .tIFSACLPC, .tMSSCIS]
        ),
        "9d2009400000009600031300"
    ),
    CommandSample(
        LERemoteConnectionParameterRequestReply(
            connectionHandle: 0x0040,
            intervalMin: 6,
            intervalMax: 12,
            maxLatency: 1,
            timeout: 200,
            minCELength: 3,
            maxCELength: 4
        ),
        "20200e400006000c000100c80003000400"
    ),
    CommandSample(
        LERemoteConnectionParameterRequestNegativeReply(connectionHandle: 0x0040),
        "21200340003b"
    ),
    CommandSample(
        LESetDefaultSubrate(
            subrateMin: 2,
            subrateMax: 0x0104,
            maxLatency: 1,
            continuationNumber: 3,
            supervisionTimeout: 3200
        ),
        "7d200a0200040101000300800c"
    ),
    CommandSample(
        LESubrateRequest(
            connectionHandle: 0x0040,
            subrateMin: 2,
            subrateMax: 6,
            maxLatency: 0x0105,
            continuationNumber: 3,
            supervisionTimeout: 500
        ),
        "7e200c40000200060005010300f401"
    ),
    CommandSample(
        LEEnhancedReadTransmitPowerLevel(connectionHandle: 0x0040, phy: .leCodedS2),
        "762003400004"
    ),
    CommandSample(
        LEReadRemoteTransmitPowerLevel(connectionHandle: 0x0040, phy: .le2M),
        "772003400002"
    ),
    CommandSample(
        LESetPathLossReportingParameters(
            connectionHandle: 0x0040,
            highThreshold: 80,
            highHysteresis: 5,
            lowThreshold: 50,
            lowHysteresis: 6,
            minTimeSpent: 0x0203
        ),
        "782008400050053206" + "0302"
    ),
    CommandSample(
        LESetPathLossReportingEnable(connectionHandle: 0x0040, enable: true),
        "792003400001"
    ),
    CommandSample(
        LESetTransmitPowerReportingEnable(connectionHandle: 0x0040, localEnable: false, remoteEnable: true),
        "7a200440000001"
    ),
]
