import BLEATT
import BLEByteCoding
import BLEGATT

// PDUs on enhanced bearers. The server's database, the client's configurations and the subscribers belong to the link;
// transactions belong to each bearer.
extension ATTRouter {
    /// Takes a PDU received on an enhanced bearer.
    ///
    /// - Parameter unsentCount: the number of PDUs that the bearer's channel has not sent completely.
    mutating func receive(
        _ pdu: RawSpan,
        on bearer: EnhancedBearer,
        unsentCount: Int,
        into buffer: inout PacketBuffer
    ) -> Inbound {
        switch bearer.receive(pdu, unsentCount: unsentCount) {
        case .response:
            if ATTRouter.isDatabaseOutOfSync(pdu) {
                subscribers.forgetConfigurations(in: .all)
                client.discardDatabase()
            }
            return .client(bearer.client.receive(pdu, mtu: bearer.mtu, into: &buffer))
        case .request, .command:
            return .server(note(session.receive(pdu, on: &bearer.serverState, into: &buffer), on: bearer))
        case .unsupportedRequest(let opcode):
            ErrorResponse(requestOpcode: opcode, handle: .invalid, error: .requestNotSupported).encode(into: &buffer)
            return .reply
        case .oversizedRequest(let opcode, let length):
            ErrorResponse(requestOpcode: opcode, handle: .invalid, error: .invalidPDU).encode(into: &buffer)
            return .oversized(length: length)
        case .notification(.multipleHandleValueNotification): return .notifications
        case .notification: return ATTRouter.decodeNotification(pdu)
        case .indication:
            bearer.transactions.confirmationWillBeSent()
            return takeIndication(pdu)
        case .violation(let violation): return .dropped(violation)
        // This host sends its indications on the fixed channel.
        case .confirmation, .ignoredCommand, .dead: return .done
        }
    }

    private func note(_ action: ServerAction, on bearer: EnhancedBearer) -> ServerAction {
        if case .respond = action { bearer.transactions.responseWillBeSent() }
        return action
    }

    /// Gives the client an app's answer to a request on an enhanced bearer.
    mutating func answer(
        _ answer: AnswerCall,
        on bearer: EnhancedBearer,
        into buffer: inout PacketBuffer
    ) -> ServerAction {
        switch answer {
        case .access(let request, let result):
            note(session.complete(request, with: result, on: &bearer.serverState, into: &buffer), on: bearer)
        case .authorization(let request, let isAuthorized):
            note(
                session.complete(request, isAuthorized: isAuthorized, on: &bearer.serverState, into: &buffer),
                on: bearer
            )
        }
    }

    /// Updates the number of the client's bearers, because an enhanced bearer was opened or has ended.
    mutating func bearersChanged() {
        session.bearerCount = 1 + (enhanced?.bearers.count ?? 0)
    }
}

extension AnswerCall {
    /// The request that the answer is for.
    var request: UInt64 {
        switch self {
        case .access(let request, _), .authorization(let request, _): request
        }
    }
}
