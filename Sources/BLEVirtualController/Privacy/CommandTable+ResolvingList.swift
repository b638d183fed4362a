import BLEHCI
import BluetoothTypes

extension CommandTable {
    /// Adds the commands for private addresses (Vol 4, Part E, 7.8.38 to 7.8.45 and 7.8.77).
    mutating func addResolvingList() {
        carryOut(LEAddDeviceToResolvingList.self, needs: .llPrivacy) { $0.addToResolvingList($1) }
        carryOut(LERemoveDeviceFromResolvingList.self, needs: .llPrivacy) { controller, command in
            guard !controller.isResolvingListInUse else { return .commandDisallowed }
            guard let index = controller.resolvingList.index(of: command.peerIdentityAddress) else {
                return .unknownConnectionIdentifier
            }
            controller.resolvingList.entries.remove(at: index)
            return .success
        }
        carryOut(LEClearResolvingList.self, needs: .llPrivacy) { controller, _ in
            guard !controller.isResolvingListInUse else { return .commandDisallowed }
            controller.resolvingList.entries = []
            return .success
        }
        answer(LEReadResolvingListSize.self, needs: .llPrivacy) { controller, _ in
            .success(.init(resolvingListSize: controller.configuration.resolvingListSize))
        }
        answer(LEReadPeerResolvableAddress.self, needs: .llPrivacy) { controller, command in
            guard let index = controller.resolvingList.index(of: command.peerIdentityAddress) else {
                return .failure(.unknownConnectionIdentifier)
            }
            let entry = controller.resolvingList.entries[index]
            let address = entry.lastPeerAddress ?? entry.target?.address
            return .success(.init(peerResolvableAddress: address ?? DeviceAddress(0, isRandom: true)))
        }
        answer(LEReadLocalResolvableAddress.self, needs: .llPrivacy) { controller, command in
            guard let index = controller.resolvingList.index(of: command.peerIdentityAddress) else {
                return .failure(.unknownConnectionIdentifier)
            }
            let address = controller.localResolvablePrivateAddress(index)
            return .success(.init(localResolvableAddress: address ?? DeviceAddress(0, isRandom: true)))
        }
        carryOut(LESetAddressResolutionEnable.self, needs: .llPrivacy) { controller, command in
            guard !controller.isOnTheAir else { return .commandDisallowed }
            controller.resolvingList.isResolving = command.addressResolutionEnable
            return .success
        }
        carryOut(LESetResolvablePrivateAddressTimeout.self, needs: .llPrivacy) { controller, command in
            guard (0x0001...0x0E10).contains(command.rpaTimeout) else { return .invalidHCICommandParameters }
            controller.resolvingList.timeout = .seconds(Int(command.rpaTimeout))
            return .success
        }
        carryOut(LESetPrivacyMode.self, needs: .llPrivacy) { controller, command in
            guard !controller.isResolvingListInUse else { return .commandDisallowed }
            guard let index = controller.resolvingList.index(of: command.peerIdentityAddress) else {
                return .unknownConnectionIdentifier
            }
            controller.resolvingList.entries[index].privacyMode = command.privacyMode
            return .success
        }
    }
}

extension VirtualController {
    /// Whether any activity uses addresses.
    fileprivate var isOnTheAir: Bool {
        advertiser.isAdvertising || scanner.isEnabled || initiator != nil || synchronizer.pending != nil
    }

    fileprivate var isResolvingListInUse: Bool { resolvingList.isResolving && isOnTheAir }

    fileprivate func addToResolvingList(_ command: LEAddDeviceToResolvingList) -> HCIErrorCode {
        guard !isResolvingListInUse else { return .commandDisallowed }
        let entries = resolvingList.entries
        let isKnown = entries.contains {
            $0.identity == command.peerIdentityAddress || $0.peerIRK == command.peerIRK && command.peerIRK != 0
        }
        guard !isKnown else { return .invalidHCICommandParameters }
        guard entries.count < Int(configuration.resolvingListSize) else { return .memoryCapacityExceeded }
        resolvingList.entries.append(
            ResolvingList.Entry(
                identity: command.peerIdentityAddress,
                peerIRK: command.peerIRK,
                localIRK: command.localIRK
            )
        )
        return .success
    }
}
