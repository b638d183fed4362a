import BluetoothTypes

/// The controller that the bonds of a host belong to. Their peers know the host by its public address.
///
/// A host that has lost its controller may find another one in its place, for example under the number of an adapter
/// that was unplugged. The host notices this if both controllers have a public address. There are two cases:
///
/// - The host has bonds. It does not use the other controller, because the peers do not know the other address.
/// - The host has no bonds. It uses the other controller, but does not save bonds, identity and counters: the store has
///   the state of the first one.
struct BondedController {
    /// The public address of the controller; nil before the first bring-up, and if the first controller has none.
    private(set) var publicAddress: DeviceAddress?
    /// The public address of the controller whose state was loaded.
    private var storedAddress: DeviceAddress?
    private var isAssigned = false
    /// Why the host does not use the controller that was brought up last; nil if it does.
    private(set) var refusal: String?

    /// Whether the store has the state of another controller.
    var hasForeignStore: Bool { storedAddress != publicAddress }

    /// Why bonds are not saved; nil if the store has the state of the controller.
    var problem: String? {
        guard let publicAddress, let storedAddress, publicAddress != storedAddress else { return nil }
        return "the controller now has the public address \(publicAddress), and the saved state is that of "
            + "\(storedAddress): bonds are not saved until that controller is back or the adapter is opened again"
    }

    /// Handles that a controller is brought up. The first one is that of the store.
    ///
    /// - Parameters:
    ///   - address: the controller's public address; nil if it is not known.
    ///   - hasBonds: whether there are bonds.
    /// - Returns: ``refusal``.
    mutating func assign(_ address: DeviceAddress?, hasBonds: Bool) -> String? {
        refusal = nil
        guard isAssigned else {
            publicAddress = address
            storedAddress = address
            isAssigned = true
            return nil
        }
        guard let earlier = publicAddress, let address, address != earlier else { return nil }
        if hasBonds {
            refusal =
                "the controller now has the public address \(address), and bonded peers know this host by "
                + "\(earlier): connect that controller again, or open the adapter again"
        } else {
            publicAddress = address
        }
        return refusal
    }
}
