import BLEHCI
import BluetoothTypes

/// A connection that the host has requested.
struct Initiation {
    typealias PHYParameters = LEExtendedCreateConnection.PHYParameters

    /// Whether extended advertising is answered too.
    let isExtended: Bool
    let filterPolicy: InitiatorFilterPolicy
    let ownAddressType: OwnAddressType
    /// The address of the advertiser, if the filter accept list is not used.
    let peer: DeviceAddress
    let le1M: PHYParameters?
    let le2M: PHYParameters?
    let leCoded: PHYParameters?
    /// The start of the first scan window.
    let start: Instant

    func listens(to phy: PHY, at instant: Instant, legacy isLegacy: Bool) -> Bool {
        guard isExtended || isLegacy, let parameters = phy == .leCoded ? leCoded : le1M else { return false }
        return parameters.listening.isOpen(at: instant, since: start)
    }

    /// Returns the parameters of a link on a PHY. If the host set none for it, returns those of the PHY on which the
    /// advertiser was heard.
    func parameters(on phy: PHY, heardOn primary: PHY) -> LinkParameters? {
        for phy in [phy, primary] {
            let parameters =
                switch phy {
                case .le2M: le2M
                case .leCoded: leCoded
                default: le1M
                }
            if let parameters { return parameters.link }
        }
        return nil
    }
}

extension Initiation.PHYParameters {
    var listening: ListeningWindow { ListeningWindow(interval: scanInterval, window: scanWindow) }

    /// The parameters with the minimum interval.
    fileprivate var link: LinkParameters {
        LinkParameters(interval: connectionIntervalMin, latency: maxLatency, supervisionTimeout: supervisionTimeout)
    }

    /// Whether the parameters are in their ranges for every interval (Vol 4, Part E, 7.8.12 and 7.8.66).
    func areValid(scanIntervalUpTo limit: UInt16) -> Bool {
        let longest = LinkParameters(
            interval: connectionIntervalMax,
            latency: maxLatency,
            supervisionTimeout: supervisionTimeout
        )
        return listening.isValid(upTo: limit) && connectionIntervalMin <= connectionIntervalMax && link.areValid
            && longest.areValid && minCELength <= maxCELength
    }
}

extension VirtualController {
    /// Connects to an advertiser, if the host has requested it and the advertiser accepts.
    func connect(to advertisement: Advertisement, of identity: Identity) {
        guard let initiation = initiator, isWanted(advertisement, of: identity, by: initiation),
            !isConnected(to: identity.address),
            let own = ownAddress(initiation.ownAddressType, random: randomAddress, towards: identity.entry),
            let parameters = initiation.parameters(on: advertisement.dataPHY, heardOn: advertisement.primaryPHY)
        else { return }
        let (sender, phy) = (advertisement.sender, advertisement.dataPHY)
        guard air.getsThrough(from: self, to: sender, phy: phy),
            let peripheral = sender.acceptsConnection(to: advertisement, from: own.address)
        else { return }
        // An extended advertiser sends a response. If it is lost, no link is made.
        guard advertisement.isLegacy || air.getsThrough(from: sender, to: self, phy: phy) else { return }
        let central = LinkParty(
            controller: self,
            localResolvablePrivateAddress: own.isGenerated ? own.address : nil,
            peer: identity.address,
            peerResolvablePrivateAddress: identity.resolvablePrivateAddress
        )
        guard let handles = Link.open(central: central, peripheral: peripheral, parameters: parameters, phy: phy) else {
            return
        }
        initiator = nil
        updateListening()
        sender.advertisingHasConnected(advertisement, handles.peripheral)
    }

    private func isWanted(_ advertisement: Advertisement, of identity: Identity, by initiation: Initiation) -> Bool {
        switch direction(of: advertisement.target, from: identity, own: initiation.ownAddressType) {
        case .everyone, .thisDevice: break
        case .unresolved, .another: return false
        }
        switch initiation.filterPolicy {
        case .filterAcceptList: return isAccepted(identity.address)
        case .peerAddress:
            return identity.address.deviceAddress == initiation.peer
                || advertisement.address.address == initiation.peer
        }
    }

    /// Reports to the host that no connection was made.
    func tellNotConnected(_ status: HCIErrorCode, role: Role) {
        let nobody = PeerAddress(type: .public, value: 0)
        if host.wants(subevent: LEEnhancedConnectionComplete.subeventCode) {
            tellLE(
                LEEnhancedConnectionComplete(
                    status: status,
                    connectionHandle: 0,
                    role: role,
                    peerAddress: nobody,
                    connectionInterval: 0,
                    peripheralLatency: 0,
                    supervisionTimeout: 0
                )
            )
        } else {
            tellLE(
                LEConnectionComplete(
                    status: status,
                    connectionHandle: 0,
                    role: role,
                    peerAddress: nobody,
                    connectionInterval: 0,
                    peripheralLatency: 0,
                    supervisionTimeout: 0
                )
            )
        }
    }
}
