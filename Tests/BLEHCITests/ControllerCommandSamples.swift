import BLEHCI
import BluetoothTypes

/// Commands that are not LE ones, each with its packet.
let controllerCommandSamples: [CommandSample] = [
    CommandSample(
        SetEventMask(eventMask: [.default, .leMeta]),
        "010c08ffffffffff1f0020"
    ),
    CommandSample(
        Reset(),
        "030c00"
    ),
    CommandSample(
        SetEventMaskPage2(eventMaskPage2: [.encryptionChangeV2]),
        "630c080000000200000000"
    ),
    CommandSample(
        ReadTransmitPowerLevel(connectionHandle: 0x0040, type: .maximum),
        "2d0c03400001"
    ),
    CommandSample(
        SetControllerToHostFlowControl(flowControlEnable: .acl),
        "310c0101"
    ),
    CommandSample(
        HostBufferSize(hostACLDataPacketLength: 0x00FB, hostTotalNumACLDataPackets: 0x0014),
        "330c07fb000014000000"
    ),
    CommandSample(
        HostNumberOfCompletedPackets([
            .init(connectionHandle: 0x0040, hostNumCompletedPackets: 3),
            .init(connectionHandle: 0x0041, hostNumCompletedPackets: 0x0102),
        ]),
        "350c09024000030041000201"
    ),
    CommandSample(
        WriteLEHostSupport(),
        "6d0c020100"
    ),
    CommandSample(
        Disconnect(connectionHandle: 0x0EFF),
        "060403ff0e13"
    ),
    CommandSample(
        ReadRemoteVersionInformation(connectionHandle: 0x0041),
        "1d04024100"
    ),
    CommandSample(
        ReadLocalVersionInformation(),
        "011000"
    ),
    CommandSample(
        ReadLocalSupportedCommands(),
        "021000"
    ),
    CommandSample(
        ReadLocalSupportedFeatures(),
        "031000"
    ),
    CommandSample(
        ReadBufferSize(),
        "051000"
    ),
    CommandSample(
        ReadBDADDR(),
        "091000"
    ),
    CommandSample(
        ReadRSSI(connectionHandle: 0x0040),
        "0514024000"
    ),
    CommandSample(
        ReadAuthenticatedPayloadTimeout(connectionHandle: 0x0040),
        "7b0c024000"
    ),
    CommandSample(
        WriteAuthenticatedPayloadTimeout(connectionHandle: 0x0040, authenticatedPayloadTimeout: 3000),
        "7c0c044000b80b"
    ),
]
