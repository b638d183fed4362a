import BluetoothTypes
import HCI

// Whether the peer of an encrypted link still proves that it has the key (Vol 6, Part B, 5.4).
extension BluetoothHost {
    /// Has the controller watch a link that has just been encrypted, if the policy sets a time for that.
    func watchAuthenticatedPayload(of link: Link) {
        guard let timeout = link.security.policy.authenticatedPayloadTimeout, let information,
            information.commands.contains(WriteAuthenticatedPayloadTimeout.self)
        else { return }
        // After a reset, the event is not sent.
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

    /// Ends a link on which only packets without proof came, or none.
    func authenticatedPayloadTimedOut(_ handle: ConnectionHandle) {
        guard let link = links[handle], link.security.policy.authenticatedPayloadTimeout != nil else { return }
        logger.warning("\(link.peer) has not proven for long that it has the key of its link")
        emit(.authenticatedPayloadTimedOut(link.identifier, peer: link.identity))
        giveUp(link, .controller(.authenticationFailure), telling: .authenticationFailure)
    }
}
