import BLEHCI
import BluetoothTypes

/// The bytes 0x01 to 0x10, the first one least significant.
private let broadcastCode: UInt128 = 0x100F_0E0D_0C0B_0A09_0807_0605_0403_0201

/// Commands of isochronous channels, each with its packet.
let leIsochronousCommandSamples: [CommandSample] = [
    CommandSample(
        LEReadISOTXSync(connectionHandle: 0x0060),
        "6120026000"
    ),
    CommandSample(
        LESetCIGParameters(
            cigID: 1,
            sduIntervalCToP: 10_000,
            sduIntervalPToC: 20_000,
            worstCaseSCA: 1,
            packing: .interleaved,
            framing: .framed,
            maxTransportLatencyCToP: 40,
            maxTransportLatencyPToC: 60,
            streams: [
                .init(
                    cisID: 2,
                    maxSDUCToP: 100,
                    maxSDUPToC: 0,
                    phyCToP: .le2M,
                    phyPToC: .le1M,
                    rtnCToP: 2,
                    rtnPToC: 0
                ),
                .init(
                    cisID: 3,
                    maxSDUCToP: 200,
                    maxSDUPToC: 120,
                    phyCToP: .le1M,
                    phyPToC: .le2M,
                    rtnCToP: 3,
                    rtnPToC: 4
                ),
            ]
        ),
        "62202101102700204e0001010128003c0002" + "026400000002010200" + "03c800780001020304"
    ),
    CommandSample(
        LECreateCIS(
            streams: [
                .init(cisConnectionHandle: 0x0060, aclConnectionHandle: 0x0040),
                .init(cisConnectionHandle: 0x0061, aclConnectionHandle: 0x0041),
            ]
        ),
        "6420090260004000" + "61004100"
    ),
    CommandSample(
        LERemoveCIG(cigID: 1),
        "65200101"
    ),
    CommandSample(
        LEAcceptCISRequest(connectionHandle: 0x0060),
        "6620026000"
    ),
    CommandSample(
        LERejectCISRequest(connectionHandle: 0x0060, reason: .connectionRejectedDueToLimitedResources),
        "67200360000d"
    ),
    CommandSample(
        LECreateBIG(
            bigHandle: 1,
            advertisingHandle: 2,
            numBIS: 3,
            sduInterval: 10_000,
            maxSDU: 100,
            maxTransportLatency: 65,
            rtn: 4,
            phy: .le2M,
            packing: .interleaved,
            framing: .unframed,
            broadcastCode: broadcastCode
        ),
        "68201f010203102700640041000402010001" + "0102030405060708090a0b0c0d0e0f10"
    ),
    CommandSample(
        LECreateBIG(
            bigHandle: 1,
            advertisingHandle: 2,
            numBIS: 3,
            sduInterval: 10_000,
            maxSDU: 100,
            maxTransportLatency: 65
        ),
        "68201f010203102700640041000202000000" + "00000000000000000000000000000000"
    ),
    CommandSample(
        LETerminateBIG(bigHandle: 1, reason: .connectionTerminatedByLocalHost),
        "6a20020116"
    ),
    CommandSample(
        LEBIGCreateSync(
            bigHandle: 1,
            syncHandle: 0x0023,
            broadcastCode: broadcastCode,
            mse: 2,
            bigSyncTimeout: 100,
            streams: [1, 3]
        ),
        "6b201a01230001" + "0102030405060708090a0b0c0d0e0f10" + "026400020103"
    ),
    CommandSample(
        LEBIGTerminateSync(bigHandle: 1),
        "6c200101"
    ),
    CommandSample(
        LESetupISODataPath(
            connectionHandle: 0x0060,
            dataPathDirection: .output,
            controllerDelay: 0x010203,
            codecConfiguration: [5, 6]
        ),
        "6e200f600001000300000000030201020506"
    ),
    CommandSample(
        LERemoveISODataPath(connectionHandle: 0x0060, dataPathDirection: [.input, .output]),
        "6f2003600003"
    ),
]

/// Events of isochronous channels, each with its packet.
let leIsochronousEventSamples: [EventSample] = [
    EventSample(
        LECISEstablished(
            connectionHandle: 0x0060,
            cigSyncDelay: 0x1234,
            cisSyncDelay: 0x1230,
            transportLatencyCToP: 0x4567,
            transportLatencyPToC: 0x89AB,
            phyCToP: .le2M,
            phyPToC: .le1M,
            nse: 3,
            bnCToP: 1,
            bnPToC: 0,
            ftCToP: 2,
            ftPToC: 4,
            maxPDUCToP: 100,
            maxPDUPToC: 0,
            isoInterval: 8
        ),
        "3e1d19006000341200301200674500ab890002010301000204640000000800"
    ),
    EventSample(
        LECISEstablishedV2(
            connectionHandle: 0x0060,
            cigSyncDelay: 0x1234,
            cisSyncDelay: 0x1230,
            transportLatencyCToP: 0x4567,
            transportLatencyPToC: 0x89AB,
            phyCToP: .le2M,
            phyPToC: .le1M,
            nse: 3,
            bnCToP: 1,
            bnPToC: 0,
            ftCToP: 2,
            ftPToC: 4,
            maxPDUCToP: 100,
            maxPDUPToC: 0,
            isoInterval: 8,
            subInterval: 0x0304,
            maxSDUCToP: 0x0102,
            maxSDUPToC: 0x0506,
            sduIntervalCToP: 0x010203,
            sduIntervalPToC: 0x040506,
            framing: .framed
        ),
        "3e2b2a006000341200301200674500ab8900020103010002046400000008000403000201060503020106050401"
    ),
    EventSample(
        LECISRequest(aclConnectionHandle: 0x0040, cisConnectionHandle: 0x0060, cigID: 1, cisID: 2),
        "3e071a400060000102"
    ),
    EventSample(
        LECreateBIGComplete(
            bigHandle: 1,
            bigSyncDelay: 0x1234,
            phy: .le2M,
            timing: BIGTiming(transportLatency: 0x4567, nse: 3, irc: 2, maxPDU: 100, isoInterval: 8),
            connectionHandles: [0x0060, 0x0061]
        ),
        "3e171b00013412006745000203010002640008000260006100"
    ),
    EventSample(
        LETerminateBIGComplete(bigHandle: 1, reason: .connectionTerminatedByLocalHost),
        "3e031c0116"
    ),
    EventSample(
        LEBIGSyncEstablished(
            bigHandle: 1,
            timing: BIGTiming(transportLatency: 0x4567, nse: 3, irc: 2, maxPDU: 100, isoInterval: 8),
            connectionHandles: [0x0060, 0x0061]
        ),
        "3e131d000167450003010002640008000260006100"
    ),
    EventSample(
        LEBIGSyncLost(bigHandle: 1, reason: .remoteUserTerminatedConnection),
        "3e031e0113"
    ),
    EventSample(
        LEBIGInfoAdvertisingReport(
            syncHandle: 0x0023,
            numBIS: 2,
            nse: 3,
            isoInterval: 8,
            bn: 1,
            pto: 0,
            irc: 2,
            maxPDU: 100,
            sduInterval: 10_000,
            maxSDU: 100,
            phy: .le2M,
            framing: .unframed,
            encryption: 1
        ),
        "3e142223000203080001000264001027006400020001"
    ),
]

/// The return parameters of commands of isochronous channels, each with its packet.
let leIsochronousReturnSamples: [ReturnParametersSample] = [
    ReturnParametersSample(
        LEReadISOTXSync.self,
        returning: .init(
            connectionHandle: 0x0060,
            packetSequenceNumber: 0x0102,
            txTimeStamp: 0x0304_0506,
            timeOffset: 0x070809
        ),
        "0e0f016120006000" + "0201" + "06050403" + "090807"
    ),
    ReturnParametersSample(
        LESetCIGParameters.self,
        returning: .init(cigID: 1, connectionHandles: [0x0060, 0x0061]),
        "0e0a0162200001" + "0260006100"
    ),
    ReturnParametersSample(
        LERemoveCIG.self,
        returning: .init(cigID: 1),
        "0e0501652000" + "01"
    ),
    ReturnParametersSample(
        LERejectCISRequest.self,
        returning: .init(connectionHandle: 0x0060),
        "0e0601672000" + "6000"
    ),
    ReturnParametersSample(
        LEBIGTerminateSync.self,
        returning: .init(bigHandle: 1),
        "0e05016c2000" + "01"
    ),
    ReturnParametersSample(
        LESetupISODataPath.self,
        returning: .init(connectionHandle: 0x0060),
        "0e06016e2000" + "6000"
    ),
    ReturnParametersSample(
        LERemoveISODataPath.self,
        returning: .init(connectionHandle: 0x0060),
        "0e06016f2000" + "6000"
    ),
]
