import BLECryptography
import BLEHCI
import BluetoothTypes

extension CommandTable {
    /// Adds the controller and baseband commands (Vol 4, Part E, 7.3).
    mutating func addBaseband() {
        carryOut(Reset.self) { controller, _ in
            controller.forgetEverything()
            return .success
        }
        carryOut(SetEventMask.self) { controller, command in
            controller.host.eventMask = command.eventMask
            return .success
        }
        carryOut(SetEventMaskPage2.self) { controller, command in
            controller.host.eventMaskPage2 = command.eventMaskPage2
            for place in controller.links { place?.end.watchAuthenticatedPayload() }
            return .success
        }
        answer(ReadTransmitPowerLevel.self) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            let maximum = controller.configuration.transmitPower
            return .success(
                .init(
                    connectionHandle: command.connectionHandle,
                    transmitPowerLevel: command.type == .current ? end.power.power : maximum
                )
            )
        }
    }

    /// Adds the informational parameters (Vol 4, Part E, 7.4).
    mutating func addInformation() {
        answer(ReadLocalVersionInformation.self) { _, _ in
            .success(
                .init(
                    hciVersion: VirtualController.version,
                    hciSubversion: 0,
                    lmpVersion: VirtualController.version,
                    companyIdentifier: VirtualController.company,
                    lmpSubversion: 0
                )
            )
        }
        answer(ReadLocalSupportedCommands.self) { controller, _ in
            .success(.init(supportedCommands: CommandTable.all.supported(by: controller.configuration.features)))
        }
        answer(ReadLocalSupportedFeatures.self) { _, _ in
            .success(.init(lmpFeatures: [.brEdrNotSupported, .leSupportedController]))
        }
        answer(ReadBDADDR.self) { controller, _ in .success(.init(bdADDR: controller.configuration.address)) }
    }

    /// Adds the LE commands for the whole controller (Vol 4, Part E, 7.8).
    mutating func addController() {
        carryOut(LESetEventMask.self) { controller, command in
            controller.host.leEventMask = command.leEventMask
            return .success
        }
        answer(LEReadBufferSize.self) { controller, _ in
            .success(
                .init(
                    leACLDataPacketLength: controller.configuration.aclDataLength,
                    totalNumLEACLDataPackets: controller.configuration.aclPacketCount
                )
            )
        }
        answer(LEReadBufferSizeV2.self) { controller, _ in
            .success(
                .init(
                    leACLDataPacketLength: controller.configuration.aclDataLength,
                    totalNumLEACLDataPackets: controller.configuration.aclPacketCount,
                    isoDataPacketLength: controller.hasStreams ? IsochronousState.packetLength : 0,
                    totalNumISODataPackets: controller.hasStreams ? IsochronousState.packetCount : 0
                )
            )
        }
        answer(LEReadLocalSupportedFeatures.self) { controller, _ in
            .success(.init(leFeatures: controller.linkFeatures))
        }
        carryOut(LESetHostFeature.self) { controller, command in
            controller.setHostFeature(bit: command.bitNumber, command.bitValue)
        }
        answer(LEReadSupportedStates.self) { _, _ in
            // All combinations of states in the specification (7.8.27).
            .success(.init(leStates: 0x0000_03FF_FFFF_FFFF))
        }
        answer(LEReadTransmitPower.self) { controller, _ in
            let configuration = controller.configuration
            return .success(
                .init(minTXPower: configuration.minimumTransmitPower, maxTXPower: configuration.transmitPower)
            )
        }
        answer(LERand.self) { controller, _ in .success(.init(randomNumber: controller.nextRandom())) }
        answer(LEEncrypt.self, needs: .encryption) { _, command in
            .success(.init(encryptedData: SwiftCryptography().encrypt(command.plaintextData, key: command.key)))
        }
    }
}

extension VirtualController {
    /// The features that a host sets, each with the feature of the controller that it needs.
    private static let settableFeatures: [(host: LEFeatures, needed: LEFeatures)] = [
        (.connectionSubratingHostSupport, .connectionSubrating),
        (.advertisingCodingSelectionHostSupport, .advertisingCodingSelection),
        (.channelSoundingHostSupport, .channelSounding),
        (.connectedIsochronousStreamHostSupport, .connectedIsochronousStreamPeripheral),
        (.connectedIsochronousStreamHostSupport, .connectedIsochronousStreamCentral),
    ]

    /// The features of the controller and its host.
    var linkFeatures: LEFeatures { configuration.features.union(hostFeatures) }

    /// Sets or clears a feature of the host (Vol 4, Part E, 7.8.115).
    fileprivate func setHostFeature(bit: UInt8, _ isOn: Bool) -> HCIErrorCode {
        guard links.allSatisfy({ $0 == nil }) else { return .commandDisallowed }
        let feature = bit < 64 ? LEFeatures(rawValue: 1 << bit) : []
        let isSettable = VirtualController.settableFeatures.contains { host, needed in
            host == feature && configuration.features.isSuperset(of: needed)
        }
        guard isSettable else { return .unsupportedFeatureOrParameterValue }
        if isOn { hostFeatures.insert(feature) } else { hostFeatures.remove(feature) }
        return .success
    }

    static let version = CoreVersion.v60
    /// The company identifier reserved for tests (Assigned Numbers, 7.1).
    static let company: UInt16 = 0xFFFF
}
