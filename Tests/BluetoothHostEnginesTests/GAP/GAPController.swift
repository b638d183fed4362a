import BLEHCI
import BluetoothTypes

@testable import BluetoothHost

/// A controller with one initiator, which refuses what the specification does not allow (Vol 4, Part E, 7.8). It
/// accepts either the legacy commands or the extended ones, because a host must not mix them (3.1.1).
struct GAPController {
    /// The answer to a command for LE Coded, if the controller refuses this PHY.
    static let codedRefusal = HCIErrorCode.unsupportedFeatureOrParameterValue

    private static let legacyCommands: Set<HCIOpcode> = [
        LESetScanEnable.opcode, LESetScanParameters.opcode, LECreateConnection.opcode, LESetAdvertisingEnable.opcode,
        LESetAdvertisingParameters.opcode, LESetAdvertisingData.opcode, LESetScanResponseData.opcode,
    ]
    private static let extendedCommands: Set<HCIOpcode> = [
        LESetExtendedScanEnable.opcode, LESetExtendedScanParameters.opcode, LEExtendedCreateConnection.opcode,
        LESetExtendedAdvertisingEnable.opcode, LESetExtendedAdvertisingParameters.opcode,
        LESetExtendedAdvertisingData.opcode, LESetExtendedScanResponseData.opcode,
        LESetAdvertisingSetRandomAddress.opcode, LERemoveAdvertisingSet.opcode,
    ]

    var scan = SimulatedScan()
    var initiator = SimulatedInitiator()
    /// Legacy advertising.
    private var isLegacyAdvertising = false
    private var sets = SimulatedAdvertisingSets()
    var randomAddress: DeviceAddress?
    var resolvingList: Set<DeviceAddress> = []
    var isResolving = false
    /// Whether the controller can scan while it initiates (Vol 4, Part E, 7.8.27).
    var canScanWhileInitiating = true
    /// Whether it also refuses the parameters of a scan that it cannot start because it initiates.
    var refusesScanParametersWhileInitiating = false
    var usesExtendedCommands = false
    /// Whether it creates a synchronization with a periodic advertising train.
    var isCreatingSynchronization = false
    /// Whether it refuses LE Coded, although it reports this PHY.
    var refusesCoded = false

    /// The number of advertisements that it sends.
    var advertisementCount: Int { usesExtendedCommands ? sets.enabledCount : isLegacyAdvertising ? 1 : 0 }

    var isAdvertising: Bool { advertisementCount > 0 }

    private var isInitiating: Bool { initiator.state != .idle }
    private var isAtRest: Bool {
        !scan.isOn && !isInitiating && advertisementCount == 0 && !isCreatingSynchronization
    }

    mutating func reset() {
        var controller = GAPController()
        controller.canScanWhileInitiating = canScanWhileInitiating
        controller.refusesScanParametersWhileInitiating = refusesScanParametersWhileInitiating
        controller.usesExtendedCommands = usesExtendedCommands
        controller.refusesCoded = refusesCoded
        self = controller
    }

    /// Whether a refusal is no fault of the host.
    static func isUsual(_ status: HCIErrorCode) -> Bool { status == codedRefusal }

    mutating func perform(_ command: GAPCommand) -> HCIErrorCode {
        let excluded = usesExtendedCommands ? GAPController.legacyCommands : GAPController.extendedCommands
        if excluded.contains(command.opcode) || isOverlapping(command) { return .commandDisallowed }
        if refusesCoded, isForCoded(command) { return GAPController.codedRefusal }
        switch command.opcode {
        case LESetScanEnable.opcode, LESetScanParameters.opcode, LESetExtendedScanEnable.opcode,
            LESetExtendedScanParameters.opcode:
            return scan.perform(command)
        case LECreateConnection.opcode, LEExtendedCreateConnection.opcode, LECreateConnectionCancel.opcode,
            LEClearFilterAcceptList.opcode, LEAddDeviceToFilterAcceptList.opcode:
            return initiator.perform(command)
        case LESetAdvertisingEnable.opcode:
            isLegacyAdvertising = command.decode(LESetAdvertisingEnable.self)?.advertisingEnable ?? false
        case LESetAdvertisingParameters.opcode: if isLegacyAdvertising { return .commandDisallowed }
        case LESetAdvertisingData.opcode, LESetScanResponseData.opcode: break
        case LESetResolvablePrivateAddressTimeout.opcode, LESetPrivacyMode.opcode, LESetEventMask.opcode: break
        case LEPeriodicAdvertisingCreateSync.opcode:
            if isCreatingSynchronization { return .commandDisallowed }
            isCreatingSynchronization = true
        case LEPeriodicAdvertisingCreateSyncCancel.opcode:
            if !isCreatingSynchronization { return .commandDisallowed }
            isCreatingSynchronization = false
        case LESetRandomAddress.opcode:
            // Advertising sets have addresses of their own (7.8.4).
            guard !scan.isOn, !isInitiating, !isLegacyAdvertising else { return .commandDisallowed }
            randomAddress = command.decode(LESetRandomAddress.self)?.randomAddress
        case let opcode where GAPController.extendedCommands.contains(opcode): return sets.perform(command)
        default: return changeResolving(command)
        }
        return .success
    }

    /// Whether a command begins scanning or initiating, and the controller cannot do both at the same time.
    private func isOverlapping(_ command: GAPCommand) -> Bool {
        guard !canScanWhileInitiating else { return false }
        switch command.opcode {
        case LESetScanParameters.opcode, LESetExtendedScanParameters.opcode:
            return isInitiating && refusesScanParametersWhileInitiating
        case LESetScanEnable.opcode:
            return isInitiating && command.decode(LESetScanEnable.self)?.leScanEnable == true
        case LESetExtendedScanEnable.opcode:
            return isInitiating && command.decode(LESetExtendedScanEnable.self)?.enable == true
        case LECreateConnection.opcode, LEExtendedCreateConnection.opcode: return scan.isOn
        default: return false
        }
    }

    private func isForCoded(_ command: GAPCommand) -> Bool {
        command.decode(LESetExtendedScanParameters.self)?.leCoded != nil
            || command.decode(LEExtendedCreateConnection.self)?.leCoded != nil
    }

    private mutating func changeResolving(_ command: GAPCommand) -> HCIErrorCode {
        guard isAtRest else { return .commandDisallowed }
        if let command = command.decode(LEAddDeviceToResolvingList.self) {
            resolvingList.insert(command.peerIdentityAddress)
        } else if let command = command.decode(LERemoveDeviceFromResolvingList.self) {
            resolvingList.remove(command.peerIdentityAddress)
        } else if let command = command.decode(LESetAddressResolutionEnable.self) {
            isResolving = command.addressResolutionEnable
        } else {
            return .unknownHCICommand
        }
        return .success
    }
}

/// The advertising sets of a controller (Vol 4, Part E, 7.8.52 to 7.8.59).
struct SimulatedAdvertisingSets {
    private struct AdvertisingSet {
        var needsRandomAddress = false
        var address: DeviceAddress?
        /// Whether more data must follow.
        var isIncomplete = false
        var isOn = false
    }

    private var sets: [UInt8: AdvertisingSet] = [:]

    var enabledCount: Int { sets.values.count(where: \.isOn) }

    mutating func perform(_ command: GAPCommand) -> HCIErrorCode {
        if let command = command.decode(LESetExtendedAdvertisingParameters.self) {
            return setParameters(command)
        } else if let command = command.decode(LESetExtendedAdvertisingData.self) {
            return setData(command.advertisingHandle, command.operation)
        } else if let command = command.decode(LESetExtendedScanResponseData.self) {
            return setData(command.advertisingHandle, command.operation)
        } else if let command = command.decode(LESetAdvertisingSetRandomAddress.self) {
            return setAddress(command)
        } else if let command = command.decode(LESetExtendedAdvertisingEnable.self) {
            for set in command.sets {
                let status = enable(set.advertisingHandle, command.enable)
                if status != .success { return status }
            }
            return .success
        } else if let command = command.decode(LERemoveAdvertisingSet.self) {
            guard let set = sets[command.advertisingHandle] else { return .unknownAdvertisingIdentifier }
            guard !set.isOn else { return .commandDisallowed }
            sets[command.advertisingHandle] = nil
            return .success
        }
        return .invalidHCICommandParameters
    }

    private mutating func setParameters(_ command: LESetExtendedAdvertisingParameters) -> HCIErrorCode {
        var set = sets[command.advertisingHandle] ?? AdvertisingSet()
        guard !set.isOn else { return .commandDisallowed }
        set.needsRandomAddress = command.ownAddressType == .random || command.ownAddressType == .resolvableOrRandom
        sets[command.advertisingHandle] = set
        return .success
    }

    private mutating func setData(_ handle: UInt8, _ operation: AdvertisingDataOperation) -> HCIErrorCode {
        guard let set = sets[handle] else { return .unknownAdvertisingIdentifier }
        guard !set.isOn || operation == .complete else { return .commandDisallowed }
        sets[handle]?.isIncomplete = operation == .firstFragment || operation == .intermediateFragment
        return .success
    }

    /// All sets of the plan are connectable, so their addresses can be changed only while they are off.
    private mutating func setAddress(_ command: LESetAdvertisingSetRandomAddress) -> HCIErrorCode {
        guard let set = sets[command.advertisingHandle] else { return .unknownAdvertisingIdentifier }
        guard !set.isOn else { return .commandDisallowed }
        sets[command.advertisingHandle]?.address = command.randomAddress
        return .success
    }

    private mutating func enable(_ handle: UInt8, _ isOn: Bool) -> HCIErrorCode {
        guard let set = sets[handle] else { return .unknownAdvertisingIdentifier }
        if isOn, set.isIncomplete { return .commandDisallowed }
        if isOn, set.needsRandomAddress, set.address == nil { return .invalidHCICommandParameters }
        sets[handle]?.isOn = isOn
        return .success
    }
}
