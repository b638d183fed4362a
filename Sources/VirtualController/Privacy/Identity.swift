import BluetoothTypes
import HCI

/// Who sent something, as far as the resolving list tells.
struct Identity {
    /// As the host is told.
    let address: PeerAddress
    /// The device's place in the resolving list, where it has one.
    let entry: Int?
    /// The address that it used, where that was resolved.
    let resolvablePrivateAddress: DeviceAddress?

    /// An advertiser that does not say who it is.
    static let anonymous = Identity(address: .anonymous, entry: nil, resolvablePrivateAddress: nil)
}

/// An address under which the controller shows itself.
struct OwnAddress {
    let address: DeviceAddress
    /// Whether the controller itself made it.
    let isGenerated: Bool
}

/// To whom an advertisement is directed.
enum Direction: Equatable {
    case everyone
    /// This device, by the address that the host is told.
    case thisDevice(PeerAddress)
    /// Perhaps this device, by a resolvable private address that is not known.
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

    /// Who it is that uses an address; nil where it is to be ignored, as one who uses its identity address though it has a
    /// key is in network privacy mode (Vol 6, Part B, 4.7).
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

    /// To whom something from a device is directed.
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

    /// The address of a type; nil where the host has set none.
    ///
    /// - Parameters:
    ///   - random: the random address that the host has set.
    ///   - entry: the peer's place in the resolving list.
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

    /// The address that stands for this device towards a peer now; nil where the host gave no key for it.
    func localResolvablePrivateAddress(_ index: Int) -> DeviceAddress? {
        let entry = resolvingList.entries[index]
        guard entry.localIRK != 0 else { return nil }
        let generated = renewed(entry.local, irk: entry.localIRK)
        resolvingList.entries[index].local = generated
        return generated.address
    }

    /// The address to which advertising that is directed to a peer goes.
    func targetAddress(for peer: DeviceAddress, _ type: OwnAddressType) -> DeviceAddress {
        guard type == .resolvableOrPublic || type == .resolvableOrRandom, let index = resolvingList.index(of: peer),
            resolvingList.entries[index].peerIRK != 0
        else { return peer }
        let entry = resolvingList.entries[index]
        let generated = renewed(entry.target, irk: entry.peerIRK)
        resolvingList.entries[index].target = generated
        return generated.address
    }

    /// An address that still holds, or a new one.
    private func renewed(_ generated: ResolvingList.Generated?, irk: UInt128) -> ResolvingList.Generated {
        if let generated, air.now < generated.since + resolvingList.timeout { return generated }
        return ResolvingList.Generated(
            address: resolvingList.toolbox.resolvablePrivateAddress(irk: irk, random: &random),
            since: air.now
        )
    }
}
