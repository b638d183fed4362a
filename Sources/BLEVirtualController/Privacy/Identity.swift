import BLEHCI
import BluetoothTypes

/// The sender of a packet, as identified by the resolving list.
struct Identity {
    /// The address reported to the host.
    let address: PeerAddress
    /// The index of the device in the resolving list, if it is listed.
    let entry: Int?
    /// The address that the device used, if it was resolved.
    let resolvablePrivateAddress: DeviceAddress?

    /// An anonymous advertiser.
    static let anonymous = Identity(address: .anonymous, entry: nil, resolvablePrivateAddress: nil)
}

/// An address that the controller uses on the air.
struct OwnAddress {
    let address: DeviceAddress
    /// Whether the controller generated it.
    let isGenerated: Bool
}

/// The target of an advertisement.
enum Direction: Equatable {
    case everyone
    /// This device, with the address reported to the host.
    case thisDevice(PeerAddress)
    /// Possibly this device, with a resolvable private address that was not resolved.
    case unresolved(PeerAddress)
    case another
}

extension PeerAddress {
    /// The identity address to which an address was resolved.
    init(resolved identity: DeviceAddress) {
        self.init(type: identity.isRandom ? .randomIdentity : .publicIdentity, value: identity.value)
    }
}

extension VirtualController {
    // MARK: Others

    /// Returns the identity of the device with an address. Returns nil if it must be ignored: in network privacy mode,
    /// a device with a key may not use its identity address (Vol 6, Part B, 4.7).
    func identify(_ address: DeviceAddress) -> Identity? {
        if resolvingList.isResolving, let entry = resolvingList.resolve(address) {
            return Identity(
                address: PeerAddress(resolved: resolvingList.entries[entry].identity),
                entry: entry,
                resolvablePrivateAddress: address
            )
        }
        let index = resolvingList.index(of: address)
        if resolvingList.isResolving, let index {
            let entry = resolvingList.entries[index]
            if entry.peerIRK != 0, entry.privacyMode == .network { return nil }
        }
        return Identity(address: PeerAddress(address), entry: index, resolvablePrivateAddress: nil)
    }

    /// Returns the target of a packet from a device.
    func direction(
        of target: DeviceAddress?,
        from identity: Identity,
        own type: OwnAddressType
    ) -> Direction {
        guard let target else { return .everyone }
        if target == configuration.address || target == randomAddress { return .thisDevice(PeerAddress(target)) }
        guard target.kind == .resolvablePrivate else { return .another }
        guard resolvingList.isResolving, resolvingList.isOwn(target, towards: identity.entry) else {
            return .unresolved(PeerAddress(type: .unresolved, value: target.value))
        }
        switch type {
        case .random, .resolvableOrRandom:
            return .thisDevice(PeerAddress(resolved: randomAddress ?? configuration.address))
        case .public, .resolvableOrPublic:
            return .thisDevice(PeerAddress(resolved: configuration.address))
        }
    }

    // MARK: This device

    /// Returns this device's address of a type, or nil if the host has set none.
    ///
    /// - Parameters:
    ///   - random: the random address that the host has set.
    ///   - entry: the peer's index in the resolving list.
    func ownAddress(_ type: OwnAddressType, random: DeviceAddress?, towards entry: Int?) -> OwnAddress? {
        switch type {
        case .public, .random: break
        case .resolvableOrPublic, .resolvableOrRandom:
            if let entry, let address = localResolvablePrivateAddress(entry) {
                return OwnAddress(address: address, isGenerated: true)
            }
        }
        switch type {
        case .public, .resolvableOrPublic: return OwnAddress(address: configuration.address, isGenerated: false)
        case .random, .resolvableOrRandom: return random.map { OwnAddress(address: $0, isGenerated: false) }
        }
    }

    /// Returns this device's current private address for a peer, or nil if the host set no key for it.
    func localResolvablePrivateAddress(_ index: Int) -> DeviceAddress? {
        let entry = resolvingList.entries[index]
        guard entry.localIRK != 0 else { return nil }
        let generated = renewed(entry.local, irk: entry.localIRK)
        resolvingList.entries[index].local = generated
        return generated.address
    }

    /// Returns the target address for advertising directed to a peer.
    func targetAddress(for peer: DeviceAddress, _ type: OwnAddressType) -> DeviceAddress {
        guard type == .resolvableOrPublic || type == .resolvableOrRandom, let index = resolvingList.index(of: peer),
            resolvingList.entries[index].peerIRK != 0
        else { return peer }
        let entry = resolvingList.entries[index]
        let generated = renewed(entry.target, irk: entry.peerIRK)
        resolvingList.entries[index].target = generated
        return generated.address
    }

    /// Returns the address if it is still valid, or else a new address.
    private func renewed(_ generated: ResolvingList.Generated?, irk: UInt128) -> ResolvingList.Generated {
        if let generated, air.now < generated.since + resolvingList.timeout { return generated }
        return ResolvingList.Generated(
            address: resolvingList.toolbox.resolvablePrivateAddress(irk: irk, random: &random),
            since: air.now
        )
    }
}
