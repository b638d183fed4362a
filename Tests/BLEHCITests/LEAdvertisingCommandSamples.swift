import BLEHCI
import BluetoothTypes

/// Legacy, extended and periodic advertising commands, each with its packet.
let leAdvertisingCommandSamples: [CommandSample] = [
    CommandSample(
        LESetAdvertisingParameters(
            advertisingIntervalMin: 0x0020,
            advertisingIntervalMax: 0x0030,
            advertisingType: .scannableUndirected,
            ownAddressType: .resolvableOrRandom,
            peerAddress: DeviceAddress(0xF012_3456_789A, isRandom: true),
            advertisingChannelMap: [.channel37, .channel39],
            advertisingFilterPolicy: .scanRequestsFromFilterAcceptList
        ),
        "06200f200030000203019a78563412f00501"
    ),
    CommandSample(
        LEReadAdvertisingPhysicalChannelTxPower(),
        "072000"
    ),
    CommandSample(
        LESetAdvertisingData(
            advertisingData: LegacyAdvertisingData([
                0x02, 0x01, 0x06, 0x03, 0x03, 0x0D, 0x18, 0x05, 0x09, 0x53, 0x77, 0x69, 0x66,
            ])
        ),
        "0820200d02010603030d18050953776966000000000000000000000000000000000000"
    ),
    CommandSample(
        LESetScanResponseData(
            scanResponseData: LegacyAdvertisingData([
                0x02, 0x01, 0x06, 0x03, 0x03, 0x0D, 0x18, 0x05, 0x09, 0x53, 0x77, 0x69, 0x66,
            ])
        ),
        "0920200d02010603030d18050953776966000000000000000000000000000000000000"
    ),
    CommandSample(
        LESetAdvertisingEnable(advertisingEnable: true),
        "0a200101"
    ),
    CommandSample(
        LESetAdvertisingSetRandomAddress(
            advertisingHandle: 3,
            randomAddress: DeviceAddress(0xF012_3456_789A, isRandom: true)
        ),
        "352007039a78563412f0"
    ),
    CommandSample(
        LESetExtendedAdvertisingParameters(
            advertisingHandle: 3,
            advertisingEventProperties: [.connectable, .includeTXPower],
            primaryAdvertisingIntervalMin: 0x012345,
            primaryAdvertisingIntervalMax: 0x012346,
            ownAddressType: .random,
            peerAddress: DeviceAddress(0xF012_3456_789A, isRandom: true),
            advertisingFilterPolicy: .filterAcceptListOnly,
            advertisingTXPower: -12,
            primaryAdvertisingPHY: .leCoded,
            secondaryAdvertisingMaxSkip: 4,
            secondaryAdvertisingPHY: .le2M,
            advertisingSID: 9,
            scanRequestNotificationEnable: true
        ),
        "3620190341004523014623010701019a78563412f003f40304020901"
    ),
    CommandSample(
        LESetExtendedAdvertisingParametersV2(
            advertisingHandle: 3,
            advertisingEventProperties: [.connectable, .includeTXPower],
            primaryAdvertisingIntervalMin: 0x012345,
            primaryAdvertisingIntervalMax: 0x012346,
            ownAddressType: .random,
            peerAddress: DeviceAddress(0xF012_3456_789A, isRandom: true),
            advertisingFilterPolicy: .filterAcceptListOnly,
            advertisingTXPower: -12,
            primaryAdvertisingPHY: .leCoded,
            secondaryAdvertisingMaxSkip: 4,
            secondaryAdvertisingPHY: .le2M,
            advertisingSID: 9,
            scanRequestNotificationEnable: true,
            primaryAdvertisingPHYOptions: .requireS8Coding,
            secondaryAdvertisingPHYOptions: .preferS2Coding
        ),
        "7f201b0341004523014623010701019a78563412f003f403040209010401"
    ),
    CommandSample(
        LESetExtendedAdvertisingData(
            advertisingHandle: 3,
            operation: .firstFragment,
            fragmentPreference: .mayFragment,
            advertisingData: AdvertisingDataFragment([
                0x02, 0x01, 0x06, 0x03, 0x03, 0x0D, 0x18, 0x05, 0x09, 0x53, 0x77, 0x69, 0x66,
            ])
        ),
        "3720110301000d02010603030d18050953776966"
    ),
    CommandSample(
        LESetExtendedScanResponseData(
            advertisingHandle: 3,
            scanResponseData: AdvertisingDataFragment([
                0x02, 0x01, 0x06, 0x03, 0x03, 0x0D, 0x18, 0x05, 0x09, 0x53, 0x77, 0x69, 0x66,
            ])
        ),
        "3820110303010d02010603030d18050953776966"
    ),
    CommandSample(
        LESetExtendedAdvertisingEnable(
            enable: true,
            sets: [
                .init(advertisingHandle: 3, duration: 0x0102, maxExtendedAdvertisingEvents: 5),
                .init(advertisingHandle: 4),
            ]
        ),
        "39200a01020302010504000000"
    ),
    CommandSample(
        LESetExtendedAdvertisingEnable(enable: false),
        "3920020000"
    ),
    CommandSample(
        LEReadMaximumAdvertisingDataLength(),
        "3a2000"
    ),
    CommandSample(
        LEReadNumberOfSupportedAdvertisingSets(),
        "3b2000"
    ),
    CommandSample(
        LERemoveAdvertisingSet(advertisingHandle: 3),
        "3c200103"
    ),
    CommandSample(
        LEClearAdvertisingSets(),
        "3d2000"
    ),
    CommandSample(
        LESetPeriodicAdvertisingParameters(
            advertisingHandle: 3,
            periodicAdvertisingIntervalMin: 0x0050,
            periodicAdvertisingIntervalMax: 0x0060,
            periodicAdvertisingProperties: .includeTXPower
        ),
        "3e200703500060004000"
    ),
    CommandSample(
        LESetPeriodicAdvertisingData(
            advertisingHandle: 3,
            operation: .complete,
            advertisingData: PeriodicAdvertisingDataFragment([
                0x02, 0x01, 0x06, 0x03, 0x03, 0x0D, 0x18, 0x05, 0x09, 0x53, 0x77, 0x69, 0x66,
            ])
        ),
        "3f201003030d02010603030d18050953776966"
    ),
    CommandSample(
        LESetPeriodicAdvertisingEnable(enable: [.enabled, .includeADI], advertisingHandle: 3),
        "4020020303"
    ),
    CommandSample(
        LEPeriodicAdvertisingCreateSync(
            options: .reportingInitiallyDisabled,
            advertisingSID: 9,
            advertiserAddress: DeviceAddress(0xF012_3456_789A, isRandom: true),
            skip: 2,
            syncTimeout: 0x0100,
            syncCTEType: 3
        ),
        "44200e0209019a78563412f00200000103"
    ),
    CommandSample(
        LEPeriodicAdvertisingCreateSyncCancel(),
        "452000"
    ),
    CommandSample(
        LEPeriodicAdvertisingTerminateSync(syncHandle: 0x0123),
        "4620022301"
    ),
    CommandSample(
        LEAddDeviceToPeriodicAdvertiserList(
            advertiserAddress: DeviceAddress(0xF012_3456_789A, isRandom: true),
            advertisingSID: 9
        ),
        "472008019a78563412f009"
    ),
    CommandSample(
        LERemoveDeviceFromPeriodicAdvertiserList(
            advertiserAddress: DeviceAddress(0xF012_3456_789A, isRandom: true),
            advertisingSID: 9
        ),
        "482008019a78563412f009"
    ),
    CommandSample(
        LEClearPeriodicAdvertiserList(),
        "492000"
    ),
    CommandSample(
        LEReadPeriodicAdvertiserListSize(),
        "4a2000"
    ),
    CommandSample(
        LESetPeriodicAdvertisingReceiveEnable(syncHandle: 0x0123, enable: [.reporting, .duplicateFiltering]),
        "592003230103"
    ),
    CommandSample(
        LEPeriodicAdvertisingSyncTransfer(connectionHandle: 0x0040, serviceData: 0x5678, syncHandle: 0x0123),
        "5a2006400078562301"
    ),
    CommandSample(
        LEPeriodicAdvertisingSetInfoTransfer(connectionHandle: 0x0040, serviceData: 0x5678, advertisingHandle: 3),
        "5b20054000785603"
    ),
    CommandSample(
        LESetPeriodicAdvertisingSyncTransferParameters(
            connectionHandle: 0x0040,
            mode: .reportingEnabled,
            skip: 2,
            syncTimeout: 0x0100,
            cteType: 3
        ),
        "5c20084000020200000103"
    ),
    CommandSample(
        LESetDefaultPeriodicAdvertisingSyncTransferParameters(
            mode: .reportingEnabled,
            skip: 2,
            syncTimeout: 0x0100,
            cteType: 3
        ),
        "5d2006020200000103"
    ),
]
