import BLEHCI

extension CommandTable {
    /// Adds the filter accept list (Vol 4, Part E, 7.8.14 to 7.8.17).
    mutating func addAcceptList() {
        answer(LEReadFilterAcceptListSize.self) { controller, _ in
            .success(.init(filterAcceptListSize: controller.configuration.filterAcceptListSize))
        }
        carryOut(LEClearFilterAcceptList.self) { controller, _ in
            guard !controller.isAcceptListInUse else { return .commandDisallowed }
            controller.acceptList = []
            return .success
        }
        carryOut(LEAddDeviceToFilterAcceptList.self) { controller, command in
            guard !controller.isAcceptListInUse else { return .commandDisallowed }
            guard let address = command.address.asListed else { return .invalidHCICommandParameters }
            guard !controller.acceptList.contains(address) else { return .success }
            guard controller.acceptList.count < Int(controller.configuration.filterAcceptListSize) else {
                return .memoryCapacityExceeded
            }
            controller.acceptList.append(address)
            return .success
        }
        carryOut(LERemoveDeviceFromFilterAcceptList.self) { controller, command in
            guard !controller.isAcceptListInUse else { return .commandDisallowed }
            guard let address = command.address.asListed else { return .invalidHCICommandParameters }
            controller.acceptList.removeAll { $0 == address }
            return .success
        }
    }
}

extension PeerAddress {
    /// The address as the filter accept list stores it: public, random or anonymous; nil for another type.
    fileprivate var asListed: PeerAddress? {
        switch type {
        case .anonymous: .anonymous
        case .public, .random: self
        default: nil
        }
    }
}

extension VirtualController {
    /// Whether the filter accept list contains a device, by its address or its identity address.
    func isAccepted(_ address: PeerAddress) -> Bool {
        if address.type == .anonymous { return acceptList.contains(.anonymous) }
        guard let device = address.deviceAddress else { return false }
        return acceptList.contains(PeerAddress(device))
    }

    /// Whether enabled advertising, scanning or initiating uses the filter accept list. The list must not change then.
    fileprivate var isAcceptListInUse: Bool {
        advertiser.sets.contains { $0.isEnabled && $0.parameters.filterPolicy != .all }
            || scanner.isEnabled && scanner.filterPolicy.isFiltered
            || initiator?.filterPolicy == .filterAcceptList
    }
}
