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
    /// The subevent in which the request is sent; nil for a connection to an advertiser.
    var subevent: SubeventPlace?

    /// A subevent of a train of this controller.
    struct SubeventPlace: Hashable {
        let advertisingHandle: UInt8
        let subevent: UInt8
    }

    func listens(to phy: PHY, at instant: Instant, legacy isLegacy: Bool) -> Bool {
        guard subevent == nil, isExtended || isLegacy, let parameters = phy == .leCoded ? leCoded : le1M else {
            return false
        }
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
        listening.isValid(upTo: limit) && areValidForConnection
    }

    /// Whether the parameters of the connection are in their ranges, whatever those of scanning.
    var areValidForConnection: Bool {
        let longest = LinkParameters(
            interval: connectionIntervalMax,
            latency: maxLatency,
            supervisionTimeout: supervisionTimeout
        )
        return connectionIntervalMin <= connectionIntervalMax && link.areValid && longest.areValid
            && minCELength <= maxCELength
    }
}

extension VirtualController {
    /// Connects to an advertiser, if the host has requested it and the advertiser accepts.
    func connect(to advertisement: Advertisement, of identity: Identity) {
        guard let initiation = initiator, initiation.subevent == nil,
            isWanted(advertisement, of: identity, by: initiation),
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
        // `initiate` refuses them.
        case .decisionPDUs, .filterAcceptListAllPDUs, .decisionPDUsOrFilterAcceptList: return false
        }
    }

    /// Sends a connection request in a subevent instead of data, if the host has requested that. The request is sent
    /// once.
    ///
    /// - Returns: whether the subevent was used for a request.
    func connect(inSubevent subevent: UInt8, of train: PeriodicTrain, _ set: AdvertisingSet) -> Bool {
        let place = Initiation.SubeventPlace(advertisingHandle: train.handle, subevent: subevent)
        guard let initiation = initiator, initiation.subevent == place else { return false }
        initiator = nil
        updateListening()
        if !open(initiation, to: train.receivers(of: subevent), set) {
            tellNotConnected(.connectionFailedToBeEstablished, role: .central)
        }
        return true
    }

    private func open(_ initiation: Initiation, to receivers: [PeriodicSync], _ set: AdvertisingSet) -> Bool {
        let phy = set.parameters.secondaryPHY
        let entry = resolvingList.index(of: initiation.peer)
        guard
            let own = ownAddress(initiation.ownAddressType, random: randomAddress, towards: entry),
            let parameters = initiation.parameters(on: phy, heardOn: phy),
            let sync = receivers.first(where: { $0.receiver?.hasAddress(initiation.peer) == true }),
            let responder = sync.receiver, let identity = responder.identify(own.address),
            !responder.isConnected(to: identity.address), air.getsThrough(from: self, to: responder, phy: phy),
            air.getsThrough(from: responder, to: self, phy: phy)
        else { return false }
        let central = LinkParty(
            controller: self,
            localResolvablePrivateAddress: own.isGenerated ? own.address : nil,
            peer: PeerAddress(initiation.peer),
            advertisingHandle: set.handle
        )
        let peripheral = LinkParty(
            controller: responder,
            peer: identity.address,
            peerResolvablePrivateAddress: identity.resolvablePrivateAddress,
            syncHandle: sync.handle
        )
        return Link.open(central: central, peripheral: peripheral, parameters: parameters, phy: phy) != nil
    }

    private func hasAddress(_ address: DeviceAddress) -> Bool {
        address == configuration.address || address == randomAddress
    }

    /// Reports to the host that no connection was made.
    func tellNotConnected(_ status: HCIErrorCode, role: Role) {
        tell(
            LEEnhancedConnectionCompleteV2(
                status: status,
                connectionHandle: 0,
                role: role,
                peerAddress: PeerAddress(type: .public, value: 0),
                connectionInterval: 0,
                peripheralLatency: 0,
                supervisionTimeout: 0
            )
        )
    }

    /// Sends the event in the newest version that the host wants.
    func tell(_ event: LEEnhancedConnectionCompleteV2) {
        if host.wants(subevent: LEEnhancedConnectionCompleteV2.subeventCode) {
            tellLE(event)
        } else if host.wants(subevent: LEEnhancedConnectionComplete.subeventCode) {
            tellLE(
                LEEnhancedConnectionComplete(
                    status: event.status,
                    connectionHandle: event.connectionHandle,
                    role: event.role,
                    peerAddress: event.peerAddress,
                    localResolvablePrivateAddress: event.localResolvablePrivateAddress,
                    peerResolvablePrivateAddress: event.peerResolvablePrivateAddress,
                    connectionInterval: event.connectionInterval,
                    peripheralLatency: event.peripheralLatency,
                    supervisionTimeout: event.supervisionTimeout
                )
            )
        } else {
            tellLE(
                LEConnectionComplete(
                    status: event.status,
                    connectionHandle: event.connectionHandle,
                    role: event.role,
                    peerAddress: event.peerAddress,
                    connectionInterval: event.connectionInterval,
                    peripheralLatency: event.peripheralLatency,
                    supervisionTimeout: event.supervisionTimeout
                )
            )
        }
    }
}
