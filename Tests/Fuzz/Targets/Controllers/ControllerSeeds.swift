import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// Scripts for software controllers: each has a link, a train or a scan, and what hosts do with it.
var controllerSeeds: [Script] {
    let parts: [[[Script.Packet]]] = [
        [features, connection, data, procedures], [features, legacyConnection, data, procedures],
        [connection, encryption, data, ending], [features, connection, encryption, streams, ending],
        [features, connection, encryption, sounding, ending], [train, broadcast], [responses], [scans],
        [privacy, connection, data], [disturbances],
    ]
    return parts.map { Script(Array($0.joined())) } + commandScripts
}

/// Scripts with every command, with parameters of zeros, for a controller without links and for one with a link. The
/// first parameter of many commands is the handle of the link.
private var commandScripts: [Script] {
    let commands = commandSeeds.filter { $0[2] == 0 }.map { seed -> [UInt8] in
        [PacketType.command.rawValue, seed[0], seed[1], UInt8(seed.count - 3)] + seed.dropFirst(3)
    }
    return stride(from: 0, to: commands.count, by: 30).map { start -> Script in
        let packets = commands[start..<min(start + 30, commands.count)].flatMap { command -> [Script.Packet] in
            [2, addressed | 1].map { Script.Packet(choice: $0, delay: 2, octets: command) }
        }
        return Script(features + connection + packets)
    }
}

/// The bit of the choice that addresses a packet to the first link or stream of its controller.
private let addressed: UInt8 = 4
private let handle: ConnectionHandle = 0x0040
private let streamHandle: ConnectionHandle = 0x0E60
private let advertisement: [UInt8] = [2, 1, 6, 5, 9, 0x6C, 0x61, 0x6D, 0x70]
private var peer: DeviceAddress { ControllerWorld.address(1) }

private func command(_ command: some Command, at index: UInt8 = 0, delay: UInt8 = 1) -> Script.Packet {
    .init(choice: index, delay: delay, octets: commandPacket(command))
}

/// The features of hosts: streams, subrating, Channel Sounding.
private var features: [Script.Packet] {
    let bits: [UInt8] = [32, 38, 47]
    return bits.flatMap { bit -> [Script.Packet] in
        (UInt8(0)...1).map { command(LESetHostFeature(bitNumber: bit, bitValue: true), at: $0, delay: 0) }
    }
}

/// A link from the first controller to the second one.
private var connection: [Script.Packet] {
    [
        command(
            LESetExtendedAdvertisingParameters(
                advertisingHandle: 0,
                advertisingEventProperties: .connectable,
                primaryAdvertisingIntervalMin: 32,
                primaryAdvertisingIntervalMax: 32
            ),
            at: 1
        ),
        command(
            LESetExtendedAdvertisingData(
                advertisingHandle: 0,
                advertisingData: AdvertisingDataFragment(advertisement)
            ),
            at: 1
        ),
        command(LESetExtendedAdvertisingEnable(enable: true, sets: [.init(advertisingHandle: 0)]), at: 1),
        command(LEExtendedCreateConnection(peerAddress: peer)),
        command(ReadRSSI(connectionHandle: handle), delay: 50),
    ]
}

private var legacyConnection: [Script.Packet] {
    [
        command(LESetAdvertisingParameters(advertisingIntervalMin: 32, advertisingIntervalMax: 32), at: 1),
        command(LESetAdvertisingData(advertisingData: LegacyAdvertisingData(advertisement)), at: 1),
        command(LESetAdvertisingEnable(advertisingEnable: true), at: 1),
        command(LECreateConnection(peerAddress: PeerAddress(peer))),
        command(ReadRSSI(connectionHandle: handle), delay: 50),
    ]
}

/// Frames in both directions: in one packet, in two, and more than one packet has room for.
private var data: [Script.Packet] {
    let frame: [UInt8] = [3, 0, 4, 0, 0x0A, 3, 0]
    let packets: [[UInt8]] = [
        [2, 0x40, 0, 7, 0] + frame, [2, 0x40, 0, 4, 0] + frame.prefix(4), [2, 0x40, 0x10, 3, 0] + frame.suffix(3),
        [2, 0x40, 0, 200, 0, 196, 0, 4, 0] + [UInt8](repeating: 7, count: 196),
    ]
    return packets.flatMap { packet -> [Script.Packet] in
        (UInt8(0)...1).map { Script.Packet(choice: $0, delay: 10, octets: packet) }
    }
}

private var procedures: [Script.Packet] {
    [
        command(LEReadRemoteFeatures(connectionHandle: handle)),
        command(ReadRemoteVersionInformation(connectionHandle: handle), at: 1),
        command(LESetDataLength(connectionHandle: handle, txOctets: 251, txTime: 2120), delay: 20),
        command(LESetPHY(connectionHandle: handle, txPHYs: .le2M, rxPHYs: .le2M), at: 1, delay: 20),
        command(
            LEConnectionUpdate(
                connectionHandle: handle,
                connectionIntervalMin: 12,
                connectionIntervalMax: 12,
                supervisionTimeout: 100
            ),
            at: 1,
            delay: 50
        ),
        command(
            LESubrateRequest(connectionHandle: handle, subrateMin: 2, subrateMax: 4, supervisionTimeout: 400),
            delay: 100
        ),
        command(LEReadRemoteTransmitPowerLevel(connectionHandle: handle, phy: .le1M), delay: 50),
        command(
            LESetTransmitPowerReportingEnable(connectionHandle: handle, localEnable: true, remoteEnable: true),
            delay: 20
        ),
        command(LESetPathLossReportingParameters(connectionHandle: handle, lowThreshold: 30)),
        command(LESetPathLossReportingEnable(connectionHandle: handle, enable: true)),
        .init(choice: 7 << 5, delay: 50, octets: []),
        command(Disconnect(connectionHandle: handle), at: 1, delay: 50),
        command(ReadRSSI(connectionHandle: handle), delay: 100),
    ]
}

private var encryption: [Script.Packet] {
    [
        command(WriteAuthenticatedPayloadTimeout(connectionHandle: handle, authenticatedPayloadTimeout: 50)),
        command(LEEnableEncryption(connectionHandle: handle, longTermKey: 7)),
        command(LELongTermKeyRequestReply(connectionHandle: handle, longTermKey: 7), at: 1, delay: 75),
        command(ReadRSSI(connectionHandle: handle), delay: 75),
    ]
}

/// Time in which pings are sent, and the end of the link.
private var ending: [Script.Packet] {
    [
        command(ReadRSSI(connectionHandle: handle), delay: 255),
        command(Disconnect(connectionHandle: handle), delay: 100),
        command(ReadRSSI(connectionHandle: handle), delay: 100),
    ]
}

/// A connected isochronous stream with SDUs in both directions.
private var streams: [Script.Packet] {
    let creation = [
        command(
            LESetCIGParameters(
                cigID: 1,
                sduIntervalCToP: 10_000,
                sduIntervalPToC: 10_000,
                maxTransportLatencyCToP: 40,
                maxTransportLatencyPToC: 40,
                streams: [.init(cisID: 2, maxSDUCToP: 100, maxSDUPToC: 100)]
            )
        ),
        command(LECreateCIS(streams: [.init(cisConnectionHandle: streamHandle, aclConnectionHandle: handle)])),
        command(LEAcceptCISRequest(connectionHandle: streamHandle), at: 1, delay: 30),
    ]
    let end = command(Disconnect(connectionHandle: streamHandle), at: 1, delay: 50)
    return creation + paths(at: [0, 1]) + sdus(at: [0, 1]) + [end]
}

/// Data paths in both directions.
private func paths(at hosts: [UInt8]) -> [Script.Packet] {
    hosts.flatMap { host -> [Script.Packet] in
        [
            command(LESetupISODataPath(connectionHandle: streamHandle, dataPathDirection: .input), at: host, delay: 10),
            command(LESetupISODataPath(connectionHandle: streamHandle, dataPathDirection: .output), at: host),
        ]
    }
}

/// A whole SDU, one in two fragments, and a fragment without a start.
private func sdus(at hosts: [UInt8]) -> [Script.Packet] {
    let packets: [[UInt8]] = [
        [5, 0x60, 0x2E, 6, 0, 0, 0, 2, 0, 1, 2], [5, 0x60, 0x0E, 5, 0, 1, 0, 2, 0, 1], [5, 0x60, 0x3E, 1, 0, 2],
        [5, 0x60, 0x1E, 2, 0, 3, 4],
    ]
    return hosts.flatMap { host -> [Script.Packet] in
        packets.map { Script.Packet(choice: host, delay: 5, octets: $0) }
    }
}

/// Channel Sounding on the encrypted link.
private var sounding: [Script.Packet] {
    [
        command(LECSSetDefaultSettings(connectionHandle: handle, roleEnable: .initiator)),
        command(LECSSetDefaultSettings(connectionHandle: handle, roleEnable: .reflector), at: 1),
        command(LECSReadRemoteSupportedCapabilities(connectionHandle: handle)),
        command(
            LECSCreateConfig(connectionHandle: handle, configID: 1, configuration: ChannelSoundingConfiguration()),
            delay: 50
        ),
        command(LECSSecurityEnable(connectionHandle: handle), delay: 50),
        command(
            LECSSetProcedureParameters(
                connectionHandle: handle,
                configID: 1,
                maxProcedureLen: 100,
                minProcedureInterval: 2,
                maxProcedureInterval: 2,
                maxProcedureCount: 3,
                minSubeventLen: 1250,
                maxSubeventLen: 1250,
                toneAntennaConfigSelection: 0
            ),
            delay: 50
        ),
        command(LECSProcedureEnable(connectionHandle: handle, configID: 1, enable: true)),
        command(LECSProcedureEnable(connectionHandle: handle, configID: 1, enable: false), delay: 60),
    ]
}

/// An advertising set of the first controller for a train, with an interval of 100 ms.
private let trainSet = LESetExtendedAdvertisingParameters(
    advertisingHandle: 3,
    primaryAdvertisingIntervalMin: 160,
    primaryAdvertisingIntervalMax: 160,
    secondaryAdvertisingPHY: .le2M,
    advertisingSID: 5
)

/// The start of a train, and the synchronization of the second controller with it.
private var synchronization: [Script.Packet] {
    [
        command(LESetPeriodicAdvertisingEnable(enable: .enabled, advertisingHandle: 3)),
        command(LESetExtendedAdvertisingEnable(enable: true, sets: [.init(advertisingHandle: 3)])),
        command(LESetExtendedScanEnable(enable: true, filterDuplicates: .enabled), at: 1),
        command(
            LEPeriodicAdvertisingCreateSync(
                advertisingSID: 5,
                advertiserAddress: ControllerWorld.address(0),
                syncTimeout: 100
            ),
            at: 1
        ),
    ]
}

private var train: [Script.Packet] {
    let parameters = [
        command(trainSet),
        command(
            LESetPeriodicAdvertisingParameters(
                advertisingHandle: 3,
                periodicAdvertisingIntervalMin: 80,
                periodicAdvertisingIntervalMax: 80
            )
        ),
        command(
            LESetPeriodicAdvertisingData(
                advertisingHandle: 3,
                advertisingData: PeriodicAdvertisingDataFragment(advertisement)
            )
        ),
    ]
    return parameters + synchronization
}

/// A broadcast group on the train, which the second controller receives.
private var broadcast: [Script.Packet] {
    let creation = [
        command(
            LECreateBIG(
                bigHandle: 1,
                advertisingHandle: 3,
                numBIS: 2,
                sduInterval: 10_000,
                maxSDU: 100,
                maxTransportLatency: 40
            ),
            delay: 250
        ),
        command(LEBIGCreateSync(bigHandle: 7, syncHandle: 0, bigSyncTimeout: 100, streams: [1]), at: 1, delay: 100),
        command(ReadBDADDR(), delay: 50),
    ]
    let end = [
        command(LETerminateBIG(bigHandle: 1, reason: .remoteUserTerminatedConnection), delay: 50),
        command(ReadBDADDR(), delay: 50),
    ]
    return creation + paths(at: [0, 1]) + sdus(at: [0]) + end
}

/// A train with subevents, and a responder.
private var responses: [Script.Packet] {
    let parameters = LESetPeriodicAdvertisingParametersV2(
        advertisingHandle: 3,
        periodicAdvertisingIntervalMin: 80,
        periodicAdvertisingIntervalMax: 80,
        numSubevents: 4,
        subeventInterval: 16,
        responseSlotDelay: 8,
        responseSlotSpacing: 16,
        numResponseSlots: 4
    )
    let subevent = LESetPeriodicAdvertisingSubeventData(
        advertisingHandle: 3,
        subevents: [.init(subevent: 1, responseSlotCount: 2, data: .init(advertisement))]
    )
    let response = LESetPeriodicAdvertisingResponseData(
        syncHandle: 0,
        requestEvent: 10,
        requestSubevent: 1,
        responseSubevent: 1,
        responseSlot: 1,
        responseData: .init(advertisement)
    )
    let exchange = [
        command(LESetPeriodicSyncSubevent(syncHandle: 0, subevents: [1]), at: 1, delay: 200),
        command(subevent), command(response, at: 1, delay: 20), command(subevent, delay: 30), command(response, at: 1),
        command(LEPeriodicAdvertisingTerminateSync(syncHandle: 0), at: 1, delay: 100),
    ]
    return [command(trainSet), command(parameters)] + synchronization + exchange
}

/// Legacy and extended scans of the third controller, while the second one advertises.
private var scans: [Script.Packet] {
    let commands = [
        command(LESetScanParameters(leScanType: .active), at: 2),
        command(LESetScanEnable(leScanEnable: true, filterDuplicates: true), at: 2),
        command(LESetScanEnable(leScanEnable: false), at: 2, delay: 50), command(Reset(), at: 2),
        command(LESetEventMask(leEventMask: LEEventMask(rawValue: .max)), at: 2),
        command(LESetExtendedScanParameters(le1M: .init(scanType: .active)), at: 2),
        command(LESetExtendedScanEnable(enable: true, duration: 20, period: 1), at: 2),
        command(LESetExtendedScanEnable(enable: false), at: 2, delay: 200),
    ]
    // The second controller advertises; the first one does not connect.
    return Array(connection.prefix(3)) + commands
}

/// The lists of both controllers, before a link between them.
private var privacy: [Script.Packet] {
    (UInt8(0)...1).flatMap { index -> [Script.Packet] in
        let other = ControllerWorld.address(1 - Int(index))
        return [
            command(LEAddDeviceToResolvingList(peerIdentityAddress: other, peerIRK: 5, localIRK: 5), at: index),
            command(LESetPrivacyMode(peerIdentityAddress: other), at: index),
            command(LESetAddressResolutionEnable(addressResolutionEnable: true), at: index),
            command(LEAddDeviceToFilterAcceptList(address: PeerAddress(other)), at: index),
        ]
    }
}

/// A link while packets are lost, until its peer fails.
private var disturbances: [Script.Packet] {
    let events = (UInt8(4)...7).map { Script.Packet(choice: $0 << 5, delay: 50, octets: []) }
    let parts = [connection, [events[0]], data, [events[0], events[3], events[1], events[1], events[2]], ending]
    return Array(parts.joined())
}
