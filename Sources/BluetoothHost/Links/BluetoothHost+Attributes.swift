import ATT
import BluetoothTypes
import ByteCoding
import GATT
import HCI

// The PDUs of the Attribute Protocol: who is to have them.
extension BluetoothHost {
    func receiveAttributePDU(_ pdu: RawSpan, on link: Link) {
        let inbound = link.bearer.receive(
            pdu,
            isReplyUnsent: sender.unsent(.reply, link.slot) > 0,
            isConfirmationUnsent: sender.unsent(.confirmation, link.slot) > 0
        )
        switch inbound {
        case .request(.exchangeMTURequest): answerMTURequest(pdu, on: link)
        case .request, .command:
            var buffer = sender.takeBuffer()
            let action = link.session.receive(pdu, into: &buffer)
            takeOutputs(ofSessionOf: link)
            perform(action, consume buffer, on: link)
        case .unsupportedRequest(let opcode):
            var buffer = sender.takeBuffer()
            ErrorResponse(requestOpcode: opcode, handle: .invalid, error: .requestNotSupported).encode(into: &buffer)
            send(consume buffer, .reply, on: .attribute, of: link)
        case .oversizedRequest(let opcode, let length):
            metrics.malformed.increment()
            logger.debug("ATT request of \(length) bytes from \(link.peer) refused: it is longer than ATT_MTU")
            var buffer = sender.takeBuffer()
            ErrorResponse(requestOpcode: opcode, handle: .invalid, error: .invalidPDU).encode(into: &buffer)
            send(consume buffer, .reply, on: .attribute, of: link)
        case .response where link.client.isHeld:
            receiveUnverifiedResponse(pdu, on: link)
        case .response:
            var buffer = sender.takeBuffer()
            let next = link.client.receive(pdu, mtu: link.bearer.mtu, into: &buffer)
            advanceClient(of: link, next, consume buffer)
            if !link.lanes.isEmpty { pumpLanes(of: link) }
        case .notification(let opcode): receiveNotification(opcode, pdu, on: link)
        case .indication: receiveIndication(pdu, on: link)
        case .confirmation: indicationConfirmed(on: link)
        case .violation(let violation):
            metrics.malformed.increment()
            logger.debug("ATT PDU from \(link.peer) dropped: \(violation)")
            if violation.isFlooding { countFlooding(by: link) }
        case .ignoredCommand, .dead: break
        }
    }

    private func answerMTURequest(_ pdu: RawSpan, on link: Link) {
        var buffer = sender.takeBuffer()
        link.bearer.responseWillBeSent()
        if let request = try? ExchangeMTURequest(decoding: pdu) {
            ExchangeMTUResponse(serverReceiveMTU: UInt16(link.bearer.offeredMTU)).encode(into: &buffer)
            setMTU(peer: request.clientReceiveMTU, of: link)
        } else {
            ErrorResponse(requestOpcode: ATT.Opcode.exchangeMTURequest.rawValue, handle: .invalid, error: .invalidPDU)
                .encode(into: &buffer)
        }
        send(consume buffer, .reply, on: .attribute, of: link)
    }
}

extension BearerViolation {
    /// Whether the peer asks for more before it has taken the answer to what it asked for.
    fileprivate var isFlooding: Bool {
        switch self {
        case .requestWhileBusy, .indicationWhileBusy: true
        case .emptyPDU, .oversizedPDU, .unexpectedResponse, .unexpectedConfirmation, .malformedErrorResponse: false
        }
    }
}
