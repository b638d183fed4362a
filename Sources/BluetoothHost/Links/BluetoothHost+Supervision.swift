import BluetoothTypes
import HCI

/// Where host and controller disagree about a link, or the controller does nothing about it any more.
///
/// A controller's events may be lost on the way, and controllers have defects. A link that is not as the controller says
/// would stay so for ever; so what it owes is waited for no longer than the Link Layer may take.
extension BluetoothHost {
    private static let margin = Duration.seconds(2)

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
        expectDisconnection(of: link)
        sendDisconnect(link, told)
    }

    /// Sends the command that ends a link.
    func sendDisconnect(_ link: Link, _ reason: HCI.ErrorCode) {
        let identifier = link.identifier
        send(Disconnect(connectionHandle: link.handle, reason: reason)) { [weak self] result in
            guard case .failure(let failure) = result else { return }
            self?.assumeIsolated { $0.disconnectionFailed(failure, of: identifier) }
        }
    }

    /// Takes the controller's refusal to end a link. A link that the controller does not know has ended.
    private func disconnectionFailed(_ failure: CommandFailure, of identifier: LinkIdentifier) {
        logger.debug("\(failure)")
        guard let link = links[identifier], case .status(.unknownConnectionIdentifier, _) = failure else { return }
        endLink(link.handle, .controller(.connectionTerminatedByLocalHost))
        endInput()
    }

    /// Sees to it that a link which is to end does: its peer's answer is not awaited for longer than the supervision timeout
    /// (Vol 6, Part B, 5.1.6).
    func expectDisconnection(of link: Link) {
        timers.cancel(link.disconnectionTimer)
        let timeout = link.parameters.supervisionTimeout + configuration.commandTimeout + BluetoothHost.margin
        link.disconnectionTimer = schedule(.disconnection(link.identifier), after: timeout)
    }

    func disconnectionTimedOut(of link: Link) {
        controllerFailed("it did not end the link to \(link.peer)", isTransportLost: false)
    }

    // MARK: Packets that stay in the controller

    /// Checks for stalled links from time to time, while the controller holds packets.
    func watchForStall() {
        guard sender.needsStallCheck else { return }
        let due = sender.scheduleStallCheck(at: loop.now)
        _ = schedule(.stallCheck, at: due)
    }

    /// Ends the links that the controller has forgotten: it keeps their packets, and does not end them.
    func endStalledLinks() {
        let stalled = sender.advance(to: loop.now)
        if !stalled.isEmpty {
            for link in links.values where stalled.contains(link.slot) { giveUp(link, .transmissionStalled) }
        }
        watchForStall()
    }
}
