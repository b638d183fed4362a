import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTypes

// Received PDUs: each is for the client, the server or an app.
extension ATTRouter {
    /// What the host does next with a received PDU.
    enum Inbound {
        /// Nothing.
        case done
        /// Sends the reply that was written.
        case reply
        /// Reports a new ATT_MTU, then sends the reply that was written.
        case mtuChanged
        /// Sends an Error Response that was written. The request was longer than ATT_MTU; its length is in bytes.
        case oversized(length: Int)
        /// Takes the effects of the server session, then performs the action.
        case server(ServerAction)
        /// Takes the effects of the client, then sends the request that was written, if there is one.
        case client(ATTOpcode?)
        /// Reports a new ATT_MTU, then continues as after ``client(_:)``. The call that has requested it ended before.
        case lateMTUResponse(ATTOpcode?)
        /// Takes the effects of the client. The response was dropped, because the server's identity is not verified. No
        /// request was written: the value is nil.
        case unverifiedResponse(ATTOpcode?)
        /// Delivers a value, which begins at this offset in the PDU.
        case notification(AttributeHandle, offset: Int)
        /// Delivers the values of a Multiple Handle Value Notification.
        case notifications
        /// Delivers a value, then calls ``ATTRouter/confirm(_:into:)``.
        case indication(AttributeHandle, offset: Int)
        /// Ends the call of an indication. The next may be sent.
        case confirmed(ValueCall)
        /// Counts a PDU that cannot be decoded.
        case malformed(ATTOpcode, PacketDecodingError)
        /// Counts a PDU that breaks the rules of the bearer.
        case dropped(BearerViolation)
        /// Counts a command that was dropped because too many wait behind a signed write.
        case commandDropped
    }

    /// Takes a received PDU.
    ///
    /// - Parameters:
    ///   - isReplyUnsent: whether a response to the peer is still queued in the host.
    ///   - isConfirmationUnsent: whether a confirmation to the peer is still queued in the host.
    mutating func receive(
        _ pdu: RawSpan,
        isReplyUnsent: Bool,
        isConfirmationUnsent: Bool,
        into buffer: inout PacketBuffer
    ) -> Inbound {
        switch bearer.receive(pdu, isReplyUnsent: isReplyUnsent, isConfirmationUnsent: isConfirmationUnsent) {
        case .response where client.isHeld:
            enhanced?.fixedChannelAnswered()
            drop(response: pdu)
            return .unverifiedResponse(nil)
        case .response(.exchangeMTUResponse) where client.ignoresNextResponse:
            enhanced?.fixedChannelAnswered()
            return takeLateMTUResponse(pdu, into: &buffer)
        case .response:
            enhanced?.fixedChannelAnswered()
            if ATTRouter.isDatabaseOutOfSync(pdu) { subscribers.forgetConfigurations(in: .all) }
            return .client(client.receive(pdu, mtu: bearer.mtu, into: &buffer))
        case .request(.exchangeMTURequest):
            return answerMTURequest(pdu, into: &buffer)
        case .request(let opcode), .command(let opcode):
            guard signedWrites.isEmpty else { return receive(pdu, opcode, behindSignedWriteInto: &buffer) }
            return .server(note(session.receive(pdu, into: &buffer)))
        case .unsupportedRequest(let opcode):
            ErrorResponse(requestOpcode: opcode, handle: .invalid, error: .requestNotSupported).encode(into: &buffer)
            return .reply
        case .oversizedRequest(let opcode, let length):
            ErrorResponse(requestOpcode: opcode, handle: .invalid, error: .invalidPDU).encode(into: &buffer)
            return .oversized(length: length)
        case .notification(.multipleHandleValueNotification): return .notifications
        case .notification: return ATTRouter.decodeNotification(pdu)
        case .indication:
            bearer.confirmationWillBeSent()
            return takeIndication(pdu)
        case .confirmation: return indicationInFlight.take().map { .confirmed($0) } ?? .done
        case .violation(let violation): return .dropped(violation)
        case .ignoredCommand, .dead: return .done
        }
    }

    /// Drops a response that arrived while the server's identity is not verified. Any device may have sent it.
    ///
    /// The request is sent again once the identity is verified, or its procedure ends. Nothing is sent before.
    private mutating func drop(response: RawSpan) {
        // A response has the opcode after its request's; an Error Response names it.
        let first = response[checked: 0] ?? 0
        let opcode = first == ATTOpcode.errorResponse.rawValue ? response[checked: 1] ?? 0 : first &- 1
        if opcode == ATTOpcode.exchangeMTURequest.rawValue { bearer.mtuExchangeFailed() }
        client.responseWasDropped()
    }

    private mutating func answerMTURequest(_ pdu: RawSpan, into buffer: inout PacketBuffer) -> Inbound {
        bearer.responseWillBeSent()
        guard let request = try? ExchangeMTURequest(decoding: pdu) else {
            ErrorResponse(requestOpcode: ATTOpcode.exchangeMTURequest.rawValue, handle: .invalid, error: .invalidPDU)
                .encode(into: &buffer)
            return .reply
        }
        ExchangeMTUResponse(serverReceiveMTU: UInt16(bearer.offeredMTU)).encode(into: &buffer)
        exchangeMTU(peer: request.clientReceiveMTU)
        return .mtuChanged
    }

    /// Takes the response to an exchange of ATT_MTU whose procedure has ended, because the peer's identity could not be
    /// verified then. The server uses the new ATT_MTU, and a client exchanges it once (Vol 3, Part F, 3.4.2.1).
    private mutating func takeLateMTUResponse(_ pdu: RawSpan, into buffer: inout PacketBuffer) -> Inbound {
        let response = try? ExchangeMTUResponse(decoding: pdu)
        owesMTUExchange = false
        if let response { exchangeMTU(peer: response.serverReceiveMTU) }
        let opcode = client.receive(pdu, mtu: bearer.mtu, into: &buffer)
        return response == nil ? .client(opcode) : .lateMTUResponse(opcode)
    }

    /// Sets ATT_MTU to the lesser of what the peer and this host take.
    mutating func exchangeMTU(peer: UInt16) {
        session.mtu = bearer.exchangeMTU(peer: peer)
    }

    // MARK: The server

    /// Records the response that the session has written.
    private mutating func note(_ action: ServerAction) -> ServerAction {
        if case .respond = action { bearer.responseWillBeSent() }
        return action
    }

    /// Holds a PDU until the signed writes before it are carried out. The client may rely on the order.
    private mutating func receive(
        _ pdu: RawSpan,
        _ opcode: ATTOpcode,
        behindSignedWriteInto buffer: inout PacketBuffer
    ) -> Inbound {
        if signedWrites.canVerifyAtOnce(opcode) {
            guard signedWrites.hasRoomForWrite else { return .commandDropped }
            return .server(note(session.receive(pdu, into: &buffer)))
        }
        let held = SignedWriteQueue.HeldPDU(bytes: [UInt8](copying: pdu), security: session.security)
        let isHeld = signedWrites.append(held, isRequest: opcode.kind == .request)
        return isHeld ? .done : .commandDropped
    }

    /// Handles the next signed write whose counter is stored, or the next PDU behind the signed writes.
    ///
    /// - Returns: nil if none can be handled now.
    mutating func handleNextHeld(into buffer: inout PacketBuffer) -> ServerAction? {
        switch signedWrites.popFirst() {
        case .write(let write, let strength): session.receiveVerified(write, strength)
        case .pdu(let pdu): receive(pdu, into: &buffer)
        case nil: nil
        }
    }

    /// Makes the server handle a PDU that was held. Any device may have sent a PDU that arrived unencrypted, even if
    /// the link is encrypted by now. So the security at its arrival counts.
    private mutating func receive(_ held: SignedWriteQueue.HeldPDU, into buffer: inout PacketBuffer) -> ServerAction {
        if held.isOfForgottenClient {
            ErrorResponse(requestOpcode: held.bytes.first ?? 0, handle: .invalid, error: .unlikelyError)
                .encode(into: &buffer)
            return note(.respond)
        }
        let current = session.security
        if current.isEncrypted { session.security = held.security }
        defer { session.security = current }
        return note(session.receive(held.bytes.rawSpan, into: &buffer))
    }

    /// Gives the client an app's answer.
    mutating func answer(_ answer: AnswerCall, into buffer: inout PacketBuffer) -> ServerAction {
        switch answer {
        case .access(let request, let result): note(session.complete(request, with: result, into: &buffer))
        case .authorization(let request, let isAuthorized):
            note(session.complete(request, isAuthorized: isAuthorized, into: &buffer))
        }
    }

    // MARK: Values

    static func decodeNotification(_ pdu: RawSpan) -> Inbound {
        do throws(PacketDecodingError) {
            let notification = try HandleValueNotification(decoding: pdu)
            return .notification(notification.handle, offset: pdu.byteCount - notification.value.byteCount)
        } catch {
            return .malformed(.handleValueNotification, error)
        }
    }

    /// A malformed indication is dropped and not confirmed.
    mutating func takeIndication(_ pdu: RawSpan) -> Inbound {
        do throws(PacketDecodingError) {
            let indication = try HandleValueIndication(decoding: pdu)
            if let range = changedHandles(indication.handle, indication.value) {
                subscribers.forgetConfigurations(in: range)
            }
            return .indication(indication.handle, offset: pdu.byteCount - indication.value.byteCount)
        } catch {
            return .malformed(.handleValueIndication, error)
        }
    }

    /// The handles that an indication of Service Changed reports as affected (Vol 3, Part G, 7.1); nil for another
    /// indication. The range may be invalid.
    private func changedHandles(_ handle: AttributeHandle, _ value: RawSpan) -> HandleRange? {
        let isServiceChanged = client.isServiceChanged(handle) || subscribers.serviceChanged == handle
        guard value.byteCount == 4, isServiceChanged else { return nil }
        var reader = ByteReader(value)
        guard let start = try? reader.readUInt16(), let end = try? reader.readUInt16() else { return nil }
        return HandleRange(start: AttributeHandle(start), end: AttributeHandle(end))
    }

    /// Whether a response is the error Database Out Of Sync: the client's handles are not valid any more.
    static func isDatabaseOutOfSync(_ response: RawSpan) -> Bool {
        response[checked: 0] == ATTOpcode.errorResponse.rawValue
            && response[checked: 4] == ATTErrorCode.databaseOutOfSync.rawValue
    }

    /// Writes the confirmation of an indication (Vol 3, Part G, 4.11). The caller takes the effects of the client
    /// before it sends the confirmation.
    mutating func confirm(_ handle: AttributeHandle, into buffer: inout PacketBuffer) {
        client.indicationReceived(from: handle)
        HandleValueConfirmation().encode(into: &buffer)
    }
}

extension BearerViolation {
    /// Whether the peer has sent a request or an indication before it has received the answer to the previous one.
    var isFlooding: Bool {
        switch self {
        case .requestWhileBusy, .indicationWhileBusy: true
        case .emptyPDU, .oversizedPDU, .unexpectedResponse, .unexpectedConfirmation, .malformedErrorResponse,
            .signedWriteOnEnhancedBearer:
            false
        }
    }
}
