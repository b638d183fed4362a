import BluetoothTypes
import ByteCoding
import SMP

// Which peers may begin a pairing, and when.
extension BluetoothHost {
    /// Lets peers begin pairings from now on for `duration`, where the policy is ``SecurityPolicy/Pairable/duringWindow``.
    /// A window that is open is replaced.
    package func openPairingWindow(for duration: Duration) {
        pairingWindowEnd = loop.now + max(duration, .zero)
    }

    /// Ends the window. Pairings under way continue.
    package func closePairingWindow() {
        pairingWindowEnd = nil
    }

    /// Answers a Pairing Request of the peer of a link with Pairing Failed, if no pairing may begin.
    ///
    /// - Returns: whether it was answered so. Otherwise the request is for the Security Manager.
    func refusesPairingRequest(of link: Link) -> Bool {
        if waitBeforePairing(on: link) != nil {
            send(PacketBuffer.bytes { PairingFailed(reason: .repeatedAttempts).encode(into: &$0) }, on: link)
            return true
        }
        if !isPairingAskedFor(on: link), let obstacle = obstacleToPeersPairing(on: link) {
            // Without a key for this role, the central can do nothing else that it was asked for.
            if link.protection.isCentralAsked, link.protection.bondKey == nil {
                refuseInPlaceOfEncryption(of: link, obstacle)
            } else {
                refusePairingRequest(of: link, obstacle)
            }
            return true
        }
        let isReplacementAskedFor = link.protection.isCentralAsked && link.protection.replacesBond
        guard !isReplacementAskedFor, let obstacle = obstacleToReplacement(on: link) else { return false }
        if link.protection.isCentralAsked {
            refuseInPlaceOfEncryption(of: link, obstacle)
        } else {
            refusePairingRequest(of: link, obstacle)
        }
        return true
    }

    /// How long the peer of a link has to wait before it can begin a pairing, where it has to.
    private func waitBeforePairing(on link: Link) -> Duration? {
        pairingAttempts.wait(for: link.identity, at: loop.now) ?? pairingAttempts.waitOfAll(at: loop.now)
    }

    private func refusePairingRequest(of link: Link, _ error: SecurityError) {
        logger.info("a pairing request of \(link.peer) was refused: \(error)")
        send(PacketBuffer.bytes { PairingFailed(reason: .pairingNotSupported).encode(into: &$0) }, on: link)
        emit(.pairingFailed(link.identifier, peer: link.identity, error))
    }

    /// Refuses the pairing of a central that was asked to encrypt the link with the key of its bond. The calls that wait for
    /// the encryption end.
    private func refuseInPlaceOfEncryption(of link: Link, _ error: SecurityError) {
        logger.info("a pairing request of \(link.peer) was refused: \(error)")
        emit(.pairingFailed(link.identifier, peer: link.identity, error))
        failSecurityWaiters(of: link, .security(error))
        run(link.protection.channel.cancel(.pairingNotSupported), on: link)
    }

    private var isWindowOpen: Bool { pairingWindowEnd.map { loop.now < $0 } ?? false }

    /// Whether the peer of a link may begin a pairing only because its bond is proven. It must not add a bond with another
    /// identity then.
    func isAdmittedByProof(_ link: Link) -> Bool {
        guard link.protection.isBondProven, link.protection.initiative == .peer else { return false }
        return switch link.protection.policy.pairable {
        case .always: false
        case .duringWindow: !isWindowOpen
        case .never: true
        }
    }

    /// Why the peer of a link must not begin a pairing now; nil where it may.
    ///
    /// A peer whose bond is proven on the link may always pair again, for a stronger key.
    func obstacleToPeersPairing(on link: Link) -> SecurityError? {
        let protection = link.protection
        switch protection.policy.pairable {
        case .always: break
        case _ where protection.isBondProven: break
        case .duringWindow where isWindowOpen: break
        case .duringWindow: return .refused("the pairing window is closed")
        case .never: return .refused("the policy does not let peers begin a pairing")
        }
        return obstacleOfAcceptList(to: link.identity, protection.policy)
    }

    /// Why the peer at an address must not pair; nil where it may, or has yet to give its identity.
    func obstacleOfAcceptList(to peer: DeviceAddress, _ policy: SecurityPolicy) -> SecurityError? {
        guard let list = policy.pairingAcceptList, peer.kind == .public || peer.kind == .randomStatic,
            !list.contains(peer)
        else { return nil }
        return .refused("\(peer) is not on the pairing accept list")
    }

    /// Whether the peer of a link has been admitted: it is on the accept list, or has paired, or there is no list. A peer
    /// that is pairing under a private address is admitted when it has given its identity.
    func isAdmittedByAcceptList(_ link: Link) -> Bool {
        guard let list = link.protection.policy.pairingAcceptList else { return true }
        return list.contains(link.identity) || link.protection.hasBond || link.protection.passingBond != nil
    }

    /// Why a peer must not pair, by the identity that it has given at the end of the pairing.
    func obstacleOfAcceptList(toIdentity identity: DeviceAddress, _ policy: SecurityPolicy) -> SecurityError? {
        guard let list = policy.pairingAcceptList, !list.contains(identity) else { return nil }
        return .refused("\(identity) is not on the pairing accept list")
    }

    /// Why a pairing that the app has not asked for must not replace the bond of a link's peer; nil where it may, or the peer
    /// is not bonded.
    func obstacleToReplacement(on link: Link) -> SecurityError? {
        guard bonds.strength(of: link.identity) != nil else { return nil }
        switch link.protection.policy.bondReplacement {
        case .whenConsented: break
        case .whenProven where link.protection.isBondProven: break
        case .whenProven: return .refused("it would replace the bond of a peer that has not proven its identity")
        case .never: return .refused("it would replace a bond, and the policy lets no pairing do that")
        }
        return pairingHandler == nil ? .refused("it would replace a bond, and there is nobody to ask") : nil
    }

    /// Whether a Pairing Request answers a Security Request that needs no window. The app has asked for that pairing, or the
    /// peer does not claim a bonded identity.
    func isPairingAskedFor(on link: Link) -> Bool {
        link.protection.isCentralAsked && (link.protection.initiative == .app || !link.protection.hasBond)
    }
}
