import BLEHCI
import BluetoothTypes

/// LE commands on the controller, security, the resolving list, data length and PHYs, each with its packet.
let leControllerCommandSamples: [CommandSample] = [
    CommandSample(
        LESetEventMask(leEventMask: [.connectionComplete, .phyUpdateComplete, .enhancedConnectionCompleteV2]),
        "0120080108000000010000"
    ),
    CommandSample(
        LESetEventMask(
            leEventMask: [.readAllRemoteFeaturesComplete, .monitoredAdvertisersReport, .frameSpaceUpdateComplete]
        ),
        "0120080000000000041800"
    ),
    CommandSample(
        LEReadBufferSize(),
        "022000"
    ),
    CommandSample(
        LEReadBufferSizeV2(),
        "602000"
    ),
    CommandSample(
        LEReadLocalSupportedFeatures(),
        "032000"
    ),
    CommandSample(
        LESetRandomAddress(randomAddress: DeviceAddress(0xF012_3456_789A, isRandom: true)),
        "0520069a78563412f0"
    ),
    CommandSample(
        LERand(),
        "182000"
    ),
    CommandSample(
        LEReadSupportedStates(),
        "1c2000"
    ),
    CommandSample(
        LEReadTransmitPower(),
        "4b2000"
    ),
    CommandSample(
        LEEncrypt(
            key: 0x1F1E_1D1C_1B1A_1918_1716_1514_1312_1110,
            plaintextData: 0xAFAE_ADAC_ABAA_A9A8_A7A6_A5A4_A3A2_A1A0
        ),
        "172020101112131415161718191a1b1c1d1e1fa0a1a2a3a4a5a6a7a8a9aaabacadaeaf"
    ),
    CommandSample(
        LEEnableEncryption(
            connectionHandle: 0x0040,
            randomNumber: 0x1122_3344_5566_7788,
            encryptedDiversifier: 0xABCD,
            longTermKey: 0x1F1E_1D1C_1B1A_1918_1716_1514_1312_1110
        ),
        "19201c40008877665544332211cdab101112131415161718191a1b1c1d1e1f"
    ),
    CommandSample(
        LELongTermKeyRequestReply(connectionHandle: 0x0040, longTermKey: 0xAFAE_ADAC_ABAA_A9A8_A7A6_A5A4_A3A2_A1A0),
        "1a20124000a0a1a2a3a4a5a6a7a8a9aaabacadaeaf"
    ),
    CommandSample(
        LELongTermKeyRequestNegativeReply(connectionHandle: 0x0040),
        "1b20024000"
    ),
    CommandSample(
        LEReadLocalP256PublicKey(),
        "252000"
    ),
    CommandSample(
        LEGenerateDHKey(remotePublicKey: P256PublicKey(x: Array(0..<32), y: Array(32..<64))),
        "262040000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728"
            + "292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"
    ),
    CommandSample(
        LEAddDeviceToResolvingList(
            peerIdentityAddress: DeviceAddress(0xF012_3456_789A, isRandom: true),
            peerIRK: 0x1F1E_1D1C_1B1A_1918_1716_1514_1312_1110,
            localIRK: 0xAFAE_ADAC_ABAA_A9A8_A7A6_A5A4_A3A2_A1A0
        ),
        "272027019a78563412f0101112131415161718191a1b1c1d1e1fa0a1a2a3a4a5a6a7a8a9aaabacadaeaf"
    ),
    CommandSample(
        LERemoveDeviceFromResolvingList(peerIdentityAddress: DeviceAddress(0x001B_DC07_32EF, isRandom: false)),
        "28200700ef3207dc1b00"
    ),
    CommandSample(
        LEClearResolvingList(),
        "292000"
    ),
    CommandSample(
        LEReadResolvingListSize(),
        "2a2000"
    ),
    CommandSample(
        LEReadPeerResolvableAddress(peerIdentityAddress: DeviceAddress(0xF012_3456_789A, isRandom: true)),
        "2b2007019a78563412f0"
    ),
    CommandSample(
        LEReadLocalResolvableAddress(peerIdentityAddress: DeviceAddress(0x001B_DC07_32EF, isRandom: false)),
        "2c200700ef3207dc1b00"
    ),
    CommandSample(
        LESetAddressResolutionEnable(addressResolutionEnable: true),
        "2d200101"
    ),
    CommandSample(
        LESetResolvablePrivateAddressTimeout(),
        "2e20028403"
    ),
    CommandSample(
        LESetPrivacyMode(peerIdentityAddress: DeviceAddress(0xF012_3456_789A, isRandom: true), privacyMode: .device),
        "4e2008019a78563412f001"
    ),
    CommandSample(
        LESetDataLength(connectionHandle: 0x0040, txOctets: 251, txTime: 2120),
        "2220064000fb004808"
    ),
    CommandSample(
        LEReadSuggestedDefaultDataLength(),
        "232000"
    ),
    CommandSample(
        LEWriteSuggestedDefaultDataLength(suggestedMaxTXOctets: 251, suggestedMaxTXTime: 17040),
        "242004fb009042"
    ),
    CommandSample(
        LEReadMaximumDataLength(),
        "2f2000"
    ),
    CommandSample(
        LEReadPHY(connectionHandle: 0x0040),
        "3020024000"
    ),
    CommandSample(
        LESetDefaultPHY(allPHYs: .anyReceiver, txPHYs: [.le1M, .le2M]),
        "312003020300"
    ),
    CommandSample(
        LESetPHY(connectionHandle: 0x0040, txPHYs: .le2M, rxPHYs: [.le2M, .leCoded], phyOptions: .preferS8Coding),
        "32200740000002060200"
    ),
    CommandSample(
        LESetHostFeature(bitNumber: 38, bitValue: true),
        "7420022601"
    ),
    CommandSample(
        LEReadAllLocalSupportedFeatures(),
        "872000"
    ),
    CommandSample(
        LESetHostFeatureV2(bitNumber: 0x0141, bitValue: true),
        "972003410101"
    ),
    CommandSample(
        LESetResolvablePrivateAddressTimeoutV2(rpaTimeoutMin: 480, rpaTimeoutMax: 900),
        "9e2004e0018403"
    ),
]
