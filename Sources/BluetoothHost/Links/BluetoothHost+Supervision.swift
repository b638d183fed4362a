import BluetoothTypes
import HCI

/// Links about which the host and the controller disagree, or which the controller no longer handles.
///
/// A controller's events can be lost, and controllers have defects. Without a time limit, a link about which both
/// disagree would stay forever. So the host waits for the controller only as long as the Link Layer may take.
extension BluetoothHost {
    private static let margin = Duration.seconds(2)

    /// Ends a link by the host's own decision.
    ///
    /// - Parameter told: the reason that is sent to the peer.
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

    /// Handles the controller's refusal to end a link. A link that the controller does not know has ended.
    private func disconnectionFailed(_ failure: CommandFailure, of identifier: LinkIdentifier) {
        logger.debug("\(failure)")
        guard let link = links[identifier], case .status(.unknownConnectionIdentifier, _) = failure else { return }
        endLink(link.handle, .controller(.connectionTerminatedByLocalHost))
        endInput()
    }

    /// Starts the timer for a link that is to end. The controller waits for the peer's answer for at most the
    /// supervision timeout (Vol 6, Part B, 5.1.6). If the link still exists after that, the controller has failed.
    func expectDisconnection(of link: Link) {
        timers.cancel(link.disconnectionTimer)
        let timeout = link.parameters.supervisionTimeout + configuration.commandTimeout + BluetoothHost.margin
        link.disconnectionTimer = schedule(.disconnection(link.identifier), after: timeout)
    }

    func disconnectionTimedOut(of link: Link) {
        controllerFailed("it did not end the link to \(link.peer)", isTransportLost: false)
    }

    // MARK: Packets that stay in the controller

    /// Schedules the next check for stalled links, while the controller holds packets.
    func watchForStall() {
        guard sender.needsStallCheck else { return }
        let due = sender.scheduleStallCheck(at: loop.now)
        _ = schedule(.stallCheck, at: due)
    }

    /// Ends the links that the controller has forgotten: it holds their packets, and neither sends them nor ends the
    /// links.
    func endStalledLinks() {
        let stalled = sender.advance(to: loop.now)
        if !stalled.isEmpty {
            for link in links.values where stalled.contains(link.slot) { giveUp(link, .transmissionStalled) }
        }
        watchForStall()
    }
}
