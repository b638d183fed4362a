import BluetoothTypes
import Cryptography
import HCI
import SMP

// The addresses that this host uses on air.
extension BluetoothHost {
    /// The type of own address for scanning and initiating, and for advertisements without an address of their own.
    var ownAddressType: OwnAddressType {
        if configuration.usesPrivateAddresses { return privacy.isMadeByController ? .resolvableOrRandom : .random }
        return information?.identityAddress.isRandom == true ? .random : .public
    }

    /// The random address that the controller should have; nil if none is used.
    func wantedRandomAddress(_ information: ControllerInformation) -> DeviceAddress? {
        if !information.usesExtendedCommands, let address = advertiser.legacyAddress { return address }
        if configuration.usesPrivateAddresses { return privacy.privateAddress }
        return information.identityAddress.isRandom ? information.identityAddress : nil
    }

    /// The random address that an extended advertising set should have; nil for the public address.
    func wantedAddress(of configuration: AdvertisementConfiguration) -> DeviceAddress? {
        if let address = configuration.address { return address }
        if self.configuration.usesPrivateAddresses { return privacy.privateAddress }
        return information.flatMap { $0.identityAddress.isRandom ? $0.identityAddress : nil }
    }

    /// This host's address on a new connection. The controller itself may have used another private address.
    func ownAddress(of connection: NewConnection) -> DeviceAddress {
        guard let information else { return DeviceAddress(0, isRandom: false) }
        let usesRandomAddress = configuration.usesPrivateAddresses || information.identityAddress.isRandom
        let address =
            usesRandomAddress ? privacy.randomAddress ?? information.identityAddress : information.identityAddress
        guard connection.role == .peripheral, let entry = advertiser.connectable else { return address }
        // If there are several advertising sets, a separate event reports which one led to the connection.
        return (information.usesExtendedCommands ? entry.address : entry.configuration.address) ?? address
    }

    /// Handles an extended advertising set that ended with a connection: the set's address is the link's.
    func advertisementLed(to event: LEAdvertisingSetTerminated) {
        guard event.status == .success, let link = links[event.connectionHandle], link.role == .peripheral,
            !link.hasAddressOfController,
            let entry = advertiser.entries.first(where: { $0.handle == event.advertisingHandle })
        else { return }
        guard let address = entry.address ?? information?.identityAddress else { return }
        inform(link) { security, context in security.contextChanged(ownAddress: address, &context) }
    }

    /// The address parameters of an advertisement: the own address type, and the peer that it is directed to or for
    /// which the controller generates the own address (Vol 4, Part E, 7.8.5).
    func addressing(
        of configuration: AdvertisementConfiguration,
        _ information: ControllerInformation
    ) -> (ownType: OwnAddressType, peer: DeviceAddress) {
        let ownType = configuration.address == nil ? ownAddressType : .random
        guard let peer = configuration.peer else {
            return (
                ownType, privacy.isMadeByController ? information.identityAddress : DeviceAddress(0, isRandom: false)
            )
        }
        if privacy.list?.resolves(peer) == true {
            // The controller directs an advertisement to a private address only if it may use a private address itself.
            switch ownType {
            case .public: return (.resolvableOrPublic, peer)
            case .random where configuration.address == nil: return (.resolvableOrRandom, peer)
            case .random, .resolvableOrPublic, .resolvableOrRandom: return (ownType, peer)
            }
        }
        return (ownType, privacy.resolver.address(of: peer, random: &random) ?? peer)
    }

    /// Whether an advertising set that is on has an outdated random address. If the controller generates the private
    /// addresses, the set's own address is not used.
    func hasOldAddress(_ entry: Advertiser.Entry) -> Bool {
        guard information?.usesExtendedCommands == true, entry.phase == .on,
            !privacy.isMadeByController || entry.configuration.address != nil
        else { return false }
        return wantedAddress(of: entry.configuration) != entry.address
    }

    /// Whether an advertisement of legacy advertising has to wait until the controller's random address is changed.
    /// Otherwise it could start with the address of the advertisement before it.
    func waitsForAddress(_ entry: Advertiser.Entry) -> Bool {
        information?.usesExtendedCommands == false && entry.configuration.address == nil
            && privacy.reconciliation.isRunning
    }

    // MARK: Rotation

    /// Generates the next private address.
    ///
    /// - Returns: false if private addresses are not used.
    @discardableResult
    func renewPrivateAddress() -> Bool {
        guard configuration.usesPrivateAddresses else { return false }
        let irk = bonds.identity.resolvingKey
        privacy.privateAddress = Toolbox(SwiftCryptography()).resolvablePrivateAddress(irk: irk, random: &random)
        return true
    }

    /// Sets the timer that replaces the private address after its time (Vol 3, Part C, 10.7.1).
    func rotatePrivateAddressLater() {
        timers.cancel(privacy.rotationTimer)
        guard configuration.usesPrivateAddresses else { return }
        privacy.rotationTimer = schedule(.addressRotation, after: privateAddressTimeout)
    }

    func rotatePrivateAddress() {
        privacy.rotationTimer = nil
        guard power == .on, renewPrivateAddress() else { return }
        reconcileAddresses()
        reconcileAdvertising()
        rotatePrivateAddressLater()
    }

    /// The private address timeout in whole seconds, in the range of LE Set Resolvable Private Address Timeout (Vol 4,
    /// Part E, 7.8.45).
    var privateAddressTimeout: Duration {
        min(max(.seconds(configuration.privateAddressTimeout.components.seconds), .seconds(1)), .seconds(3600))
    }
}
