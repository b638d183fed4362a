import BLEHCI
import BluetoothTypes

// Checks that the peer of an encrypted link still has the key (Vol 6, Part B, 5.4).
extension BluetoothHost {
    /// Makes the controller check a link that has just been encrypted, if the policy sets a time limit and the
    /// controller supports it.
    func setAuthenticatedPayloadTimeout(of link: Link) {
        guard let timeout = link.security.policy.authenticatedPayloadTimeout, let information,
            information.commands.contains(WriteAuthenticatedPayloadTimeout.self)
        else { return }
        // A reset masks the event.
        if information.commands.contains(SetEventMaskPage2.self) {
            sendAndForget(SetEventMaskPage2(eventMaskPage2: .authenticatedPayloadTimeoutExpired))
        }
        let units = (timeout / .milliseconds(10)).rounded()
        sendAndForget(
            WriteAuthenticatedPayloadTimeout(
                connectionHandle: link.handle,
                authenticatedPayloadTimeout: UInt16(min(max(units, 1), 65_535))
            )
        )
    }

    /// Ends a link on which no packet has proven for the time limit that the peer has the key.
    func authenticatedPayloadTimedOut(_ handle: ConnectionHandle) {
        guard let link = links[handle], link.security.policy.authenticatedPayloadTimeout != nil else { return }
        logger.warning("\(link.peer) has not proven within the time limit that it has the key of its link")
        emit(.authenticatedPayloadTimedOut(link.identifier, peer: link.identity))
        giveUp(link, .controller(.authenticationFailure), telling: .authenticationFailure)
        inform(link) { security, context in
            security.disconnectionBegan(.disconnected(.controller(.authenticationFailure)), &context)
        }
    }
}
