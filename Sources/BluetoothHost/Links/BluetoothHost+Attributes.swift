import BLEATT
import BLEByteCoding
import BLEGATT
import BLEHCI
import BluetoothTypes

// The Attribute Protocol: carries out what the links' ATT routers decide.
extension BluetoothHost {
    func receiveAttributePDU(_ pdu: RawSpan, on link: Link) {
        var buffer = sender.takeBuffer()
        let inbound = link.att.receive(
            pdu,
            isReplyUnsent: sender.unsent(.reply, link.slot) > 0,
            isConfirmationUnsent: sender.unsent(.confirmation, link.slot) > 0,
            into: &buffer
        )
        switch inbound {
        case .client(let opcode):
            advanceClient(of: link, opcode, consume buffer)
            if !link.att.lanes.isEmpty { pumpLanes(of: link) }
        case .lateMTUResponse(let opcode):
            mtuChanged(of: link)
            advanceClient(of: link, opcode, consume buffer)
            establish(link)
            if !link.att.lanes.isEmpty { pumpLanes(of: link) }
        case .unverifiedResponse(let opcode):
            metrics.unverifiedValues.increment()
            advanceClient(of: link, opcode, consume buffer)
        case .server(let action):
            performServerEffects(of: link)
            perform(action, consume buffer, on: link)
        case .reply:
            send(consume buffer, .reply, on: .attribute, of: link)
        case .mtuChanged:
            mtuChanged(of: link)
            send(consume buffer, .reply, on: .attribute, of: link)
        case .oversized(let length):
            metrics.malformed.increment()
            logger.debug("ATT request of \(length) bytes from \(link.peer) refused: it is longer than ATT_MTU")
            send(consume buffer, .reply, on: .attribute, of: link)
        case .indication(let handle, let offset):
            deliver(pdu.extracting(droppingFirst: offset), of: handle, isIndication: true, on: link)
            confirmIndication(of: handle, consume buffer, on: link)
        case .notification(let handle, let offset):
            sender.recycle(buffer)
            deliver(pdu.extracting(droppingFirst: offset), of: handle, isIndication: false, on: link)
        case .notifications:
            sender.recycle(buffer)
            receiveNotifications(pdu, on: link)
        case .confirmed(let call):
            sender.recycle(buffer)
            // Any device may have confirmed it while the peer's identity is not verified.
            if case .serviceChanged(let revision) = call.caller, !link.isGateClosed {
                serviceChangedConfirmed(revision, on: link)
            }
            end(call.caller, .success(()))
            pumpLanes(of: link)
        case .malformed(let opcode, let error):
            sender.recycle(buffer)
            countMalformed("\(opcode)", error)
        case .dropped(let violation):
            sender.recycle(buffer)
            metrics.malformed.increment()
            logger.debug("ATT PDU from \(link.peer) dropped: \(violation)")
            if violation.isFlooding { countFlooding(by: link) }
        case .commandDropped:
            sender.recycle(buffer)
            metrics.droppedWriteCommands.increment()
            logger.debug(
                "command of \(link.peer) dropped: too many wait for the counter of a signed write to be stored"
            )
        case .done:
            sender.recycle(buffer)
        }
    }

    // MARK: Effects

    /// Performs the effects of a link's client. Call this after each input of the client, and then ``pumpClient(of:)``.
    ///
    /// The closure of an app may call the host, which then performs further effects inside. So effects are performed in
    /// their order.
    ///
    /// - Returns: whether there was an effect.
    @discardableResult
    func performClientEffects(of link: Link) -> Bool {
        guard var effect = link.att.takeClientEffect(continuing: false) else { return false }
        while true {
            perform(effect, on: link)
            guard let next = link.att.takeClientEffect(continuing: true) else { return true }
            effect = next
        }
    }

    /// Performs the effects of a link's server session. Call this after each input of the session, and before its
    /// response is sent: values that an observer sends leave before the response.
    func performServerEffects(of link: Link) {
        while let effect = link.att.takeServerEffect() { perform(effect, on: link) }
    }

    private func perform(_ effect: ATTEffect, on link: Link) {
        switch effect {
        case .ended(let call): end(call, .ended(elevationFailure: link.att.elevationFailure))
        case .cacheChanged(let cache): if link.att.noteCacheChange() { keepCache(cache, of: link) }
        case .requireSecurity(let error):
            if !elevateSecurity(of: link, after: error) { declineElevation(of: link) }
        case .report(let event): emit(.access(link.identifier, event))
        case .keepServerState: keepServerState(of: link)
        }
    }

    private func declineElevation(of link: Link) {
        var buffer = sender.takeBuffer()
        let opcode = link.att.elevationDeclined(into: &buffer)
        sendRequest(opcode, consume buffer, on: link)
    }
}
