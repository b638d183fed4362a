import ATT
import BluetoothTypes
import ByteCoding
import GATT
import HCI

// The PDUs of the Attribute Protocol: who is to have them.
extension BluetoothHost {
    func receiveAttributePDU(_ pdu: RawSpan, on link: Link) {
        switch link.bearer.receive(pdu) {
        case .request(.exchangeMTURequest): answerMTURequest(pdu, on: link)
        case .request, .command:
            var buffer = pool.take()
            let action = link.session.receive(pdu, into: &buffer)
            perform(action, consume buffer, on: link)
        case .unsupportedRequest(let opcode):
            var buffer = pool.take()
            ErrorResponse(requestOpcode: opcode, handle: .invalid, error: .requestNotSupported).encode(into: &buffer)
            send(consume buffer, on: .attribute, of: link)
        case .response:
            var buffer = pool.take()
            let next = link.client.receive(pdu, mtu: link.bearer.mtu, into: &buffer)
            sendRequest(next, consume buffer, on: link)
        case .notification(let opcode): receiveNotification(opcode, pdu, on: link)
        case .indication: receiveIndication(pdu, on: link)
        case .confirmation: indicationConfirmed(on: link)
        case .violation(let violation):
            metrics.malformed.increment()
            logger.debug("ATT PDU from \(link.peer) dropped: \(violation)")
        case .ignoredCommand, .dead: break
        }
    }

    private func answerMTURequest(_ pdu: RawSpan, on link: Link) {
        var buffer = pool.take()
        link.bearer.responseWillBeSent()
        if let request = try? ExchangeMTURequest(decoding: pdu) {
            ExchangeMTUResponse(serverReceiveMTU: UInt16(link.bearer.offeredMTU)).encode(into: &buffer)
            setMTU(peer: request.clientReceiveMTU, of: link)
        } else {
            ErrorResponse(requestOpcode: ATT.Opcode.exchangeMTURequest.rawValue, handle: .invalid, error: .invalidPDU)
                .encode(into: &buffer)
        }
        send(consume buffer, on: .attribute, of: link)
    }

    /// Whether a frame may be written on a link now: there is room, and nobody waits for it.
    func hasRoom(on link: Link) -> Bool {
        link.outbound.fixedChannelFrameCount < configuration.outboundFrameLimit && link.roomWaiters.isEmpty
    }

    /// Lets those write that wait for room on a link, in their order, as long as there is some.
    func letWaitersWrite(on link: Link) {
        while link.outbound.fixedChannelFrameCount < configuration.outboundFrameLimit,
            let waiter = link.popRoomWaiter()
        {
            waiter.write(self)
        }
    }

    /// Waits until all that was written on a link has been sent by the controller.
    package func flush(_ identifier: LinkIdentifier) async {
        await withCheckedContinuation { continuation in
            guard let link = links[identifier], !link.outbound.isDrained || !link.roomWaiters.isEmpty else {
                return continuation.resume()
            }
            link.drainWaiters.append { continuation.resume() }
        }
    }
}
