import BluetoothTypes
import HCI

/// Where host and controller disagree about a link, or the controller does nothing about it any more.
///
/// A controller's events may be lost on the way, and controllers have defects. A link that is not as the controller says
/// would stay so for ever; so what it owes is waited for no longer than the Link Layer may take.
extension BluetoothHost {
    private static let margin = Duration.seconds(2)
    private static let lookInterval = Duration.seconds(4)

    /// Ends a link for a reason of the host's own.
    ///
    /// - Parameter told: the reason that the peer is told.
    func giveUp(
        _ link: Link,
        _ reason: DisconnectionReason,
        telling told: HCI.ErrorCode = .remoteUserTerminatedConnection
    ) {
        guard !link.isDisconnecting else { return }
        link.isDisconnecting = true
        link.ownReason = reason
        sendAndForget(Disconnect(connectionHandle: link.handle, reason: told))
        expectDisconnection(of: link)
    }

    /// Sees to it that a link which is to end does: its peer's answer is not awaited for longer than the supervision timeout
    /// (Vol 6, Part B, 5.1.6).
    func expectDisconnection(of link: Link) {
        timers.cancel(link.disconnectionTimer)
        let timeout = link.parameters.supervisionTimeout + configuration.commandTimeout + BluetoothHost.margin
        let (identifier, peer) = (link.identifier, link.peer)
        link.disconnectionTimer = schedule(after: timeout) { [weak self] in
            self?.assumeIsolated { host in
                guard host.links[identifier] != nil else { return }
                host.controllerFailed("it did not end the link to \(peer)", isTransportLost: false)
            }
        }
    }

    // MARK: Packets that stay in the controller

    /// Looks now and then whether the controller sends what it was given, while it has something.
    func watchForStall() {
        guard stallTimer == nil, acl.packetsInController > 0 else { return }
        stallTimer = schedule(after: BluetoothHost.lookInterval) { [weak self] in
            self?.assumeIsolated { $0.lookForStall() }
        }
    }

    /// A packet that the peer does not acknowledge ends the link by the supervision timeout, of 32 seconds at the most; so a
    /// link on which nothing is completed for longer, and which does not end, is one that the controller has forgotten.
    private func lookForStall() {
        stallTimer = nil
        for link in links.values {
            if link.outbound.packetsInController == 0 || link.outbound.completedCount != link.completedAtLastLook {
                link.completedAtLastLook = link.outbound.completedCount
                link.stalledLooks = 0
                continue
            }
            link.stalledLooks += 1
            let stalledFor = BluetoothHost.lookInterval * (link.stalledLooks - 1)
            if stalledFor > .seconds(32) + BluetoothHost.margin { giveUp(link, .transmissionStalled) }
        }
        watchForStall()
    }
}
