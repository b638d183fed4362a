import BLEHCI
import BluetoothTypes

// Packets of Channel Sounding. Their bytes are those of Bumble 0.0.236.

private let capabilities = ChannelSoundingCapabilities(
    numConfigSupported: 4,
    maxConsecutiveProceduresSupported: 1,
    numAntennasSupported: 2,
    maxAntennaPathsSupported: 3,
    rolesSupported: [.initiator, .reflector],
    modesSupported: 1,
    rttCapability: 5,
    rttAAOnlyN: 10,
    rttSoundingN: 20,
    rttRandomPayloadN: 30,
    nadmSoundingCapability: 1,
    nadmRandomCapability: 2,
    csSyncPHYsSupported: 2,
    subfeaturesSupported: 0x000E,
    tIP1TimesSupported: 0x0102,
    tIP2TimesSupported: 0x0304,
    tFCSTimesSupported: 0x0506,
    tPMTimesSupported: 0x0708,
    tSWTimeSupported: 10,
    txSNRCapability: 0x1F
)
private let capabilityBytes = "04010002030301050a141e01000200020e0002010403060508070a1f"

private let configuration = ChannelSoundingConfiguration(
    mainMode: .mode2,
    subMode: .mode1,
    minMainModeSteps: 3,
    maxMainModeSteps: 9,
    mainModeRepetition: 1,
    mode0Steps: 2,
    role: .reflector,
    rttType: .random64,
    csSyncPHY: .le2M,
    channelMap: .all,
    channelMapRepetition: 3,
    channelSelectionType: 1,
    ch3cShape: 1,
    ch3cJump: 6
)
private let configurationBytes = "0201030901020104" + "02" + "fcff7ffcffffffffff1f" + "0301010600"

private let errors = FrequencyActuationErrors((-36..<36).map { Int8($0) })
private let errorBytes =
    "dcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
    + "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223"

let channelSoundingCommandSamples: [CommandSample] = [
    CommandSample(LECSReadLocalSupportedCapabilities(), "892000"),
    CommandSample(LECSReadRemoteSupportedCapabilities(connectionHandle: 0x0040), "8a20024000"),
    CommandSample(
        LECSWriteCachedRemoteSupportedCapabilities(connectionHandle: 0x0040, capabilities: capabilities),
        "8b201e4000" + capabilityBytes
    ),
    CommandSample(LECSSecurityEnable(connectionHandle: 0x0040), "8c20024000"),
    CommandSample(
        LECSSetDefaultSettings(
            connectionHandle: 0x0040,
            roleEnable: [.initiator, .reflector],
            csSYNCAntennaSelection: 0xFE,
            maxTXPower: 20
        ),
        "8d2005400003fe14"
    ),
    CommandSample(LECSReadRemoteFAETable(connectionHandle: 0x0040), "8e20024000"),
    CommandSample(
        LECSWriteCachedRemoteFAETable(connectionHandle: 0x0040, remoteFAETable: errors),
        "8f204a4000" + errorBytes
    ),
    CommandSample(
        LECSCreateConfig(connectionHandle: 0x0040, configID: 2, configuration: configuration),
        "90201c40000201" + configurationBytes
    ),
    CommandSample(LECSRemoveConfig(connectionHandle: 0x0040, configID: 2), "912003400002"),
    CommandSample(LECSSetChannelClassification(channelClassification: .all), "92200afcff7ffcffffffffff1f"),
    CommandSample(
        LECSSetProcedureParameters(
            connectionHandle: 0x0040,
            configID: 2,
            maxProcedureLen: 0x0102,
            minProcedureInterval: 3,
            maxProcedureInterval: 0x0405,
            maxProcedureCount: 6,
            minSubeventLen: 0x0004E2,
            maxSubeventLen: 0x3D0900,
            toneAntennaConfigSelection: 7,
            phy: .le2M,
            preferredPeerAntenna: 3,
            snrControlInitiator: 1
        ),
        "9320174000020201030005040600e2040000093d0702800301ff"
    ),
    CommandSample(LECSProcedureEnable(connectionHandle: 0x0040, configID: 2, enable: true), "94200440000201"),
    CommandSample(
        LECSTest(
            mainMode: .mode3,
            mainModeRepetition: 1,
            mode0Steps: 2,
            role: .reflector,
            rttType: .random128,
            csSyncPHY: .le2M,
            subeventLength: 0x0004E2,
            subeventInterval: 0x0102,
            maxNumSubevents: 3,
            transmitPowerLevel: 4,
            tIP2Time: 60,
            tSWTime: 10,
            toneAntennaConfigSelection: 7,
            snrControlReflector: 2,
            drbgNonce: 0x1234,
            channelMapRepetition: 2,
            overrideConfig: 0x0001,
            overrideParameters: [1, 2, 3]
        ),
        "95202103ff010201060201e2040002010304913c96280a0700ff02341202010003010203"
    ),
    CommandSample(LECSTestEnd(), "962000"),
]

let channelSoundingReturnSamples: [ReturnParametersSample] = [
    ReturnParametersSample(
        LECSReadLocalSupportedCapabilities.self,
        returning: .init(capabilities: capabilities),
        "0e2001892000" + capabilityBytes
    ),
    ReturnParametersSample(
        LECSWriteCachedRemoteSupportedCapabilities.self,
        returning: .init(connectionHandle: 0x0040),
        "0e06018b20004000"
    ),
    ReturnParametersSample(
        LECSSetDefaultSettings.self,
        returning: .init(connectionHandle: 0x0040),
        "0e06018d20004000"
    ),
    ReturnParametersSample(
        LECSWriteCachedRemoteFAETable.self,
        returning: .init(connectionHandle: 0x0040),
        "0e06018f20004000"
    ),
    ReturnParametersSample(
        LECSSetProcedureParameters.self,
        returning: .init(connectionHandle: 0x0040),
        "0e06019320004000"
    ),
]

let channelSoundingEventSamples: [EventSample] = [
    EventSample(
        LECSReadRemoteSupportedCapabilitiesComplete(connectionHandle: 0x0040, capabilities: capabilities),
        "3e202c004000" + capabilityBytes
    ),
    EventSample(
        LECSReadRemoteFAETableComplete(connectionHandle: 0x0040, remoteFAETable: errors),
        "3e4c2d004000" + errorBytes
    ),
    EventSample(
        LECSSecurityEnableComplete(status: .pinOrKeyMissing, connectionHandle: 0x0040),
        "3e042e064000"
    ),
    EventSample(
        LECSConfigComplete(
            connectionHandle: 0x0040,
            configID: 2,
            isCreated: true,
            configuration: configuration,
            tIP2Time: 60,
            tPMTime: 10
        ),
        "3e222f0040000201" + configurationBytes + "913c960a"
    ),
    EventSample(
        LECSProcedureEnableComplete(
            connectionHandle: 0x0040,
            configID: 2,
            state: true,
            toneAntennaConfigSelection: 7,
            selectedTXPower: -4,
            subeventLen: 0x0004E2,
            subeventsPerEvent: 3,
            subeventInterval: 0x0102,
            eventInterval: 4,
            procedureInterval: 5,
            procedureCount: 6,
            maxProcedureLen: 0x0708
        ),
        "3e1630004000020107fce204000302010400050006000807"
    ),
    EventSample(LECSTestEndComplete(status: .success), "3e023300"),
]
