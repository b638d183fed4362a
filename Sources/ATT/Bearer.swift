import BluetoothTypes
import ByteCoding

/// A PDU cannot be sent on a bearer now.
public enum BearerError: Error, Hashable, Sendable {
    /// A request is in flight; the next waits for its response.
    case requestInFlight
    /// An indication is in flight; the next waits for its confirmation.
    case indicationInFlight
    /// MTUs have been exchanged; a client does so once (Vol 3, Part F, 3.4.2.1).
    case mtuExchanged
    /// The opcode is no request's, so that no response would ever come.
    case notARequest(Opcode)
    /// The transaction timer has run out: nothing more is sent on this bearer.
    case dead
}

/// How a peer can break the rules of a bearer.
public enum BearerViolation: Error, Hashable, Sendable {
    /// A PDU without an opcode.
    case emptyPDU
    /// Longer than ATT_MTU, in octets.
    case oversizedPDU(length: Int)
    /// A response to a request that was not made, or another than the one that was.
    case unexpectedResponse(opcode: UInt8)
    /// A confirmation without an indication of ours.
    case unexpectedConfirmation
    /// A request while another is being served.
    case requestWhileBusy(opcode: UInt8)
    /// An indication before the last was confirmed.
    case indicationWhileBusy
    /// An Error Response that could not be read.
    case malformedErrorResponse
}

/// The order of PDUs on one ATT bearer (Vol 3, Part F, 3.3): one request in flight each way, one indication each way,
/// the transaction timer, ATT_MTU.
///
/// The bearer decodes nothing but the opcode. Its owner asks before it sends and gives it each PDU that comes; what the
/// answer says is then done by the client or the server.
public struct Bearer: Sendable {
    /// ATT_MTU before it is exchanged, and the least it may be (Vol 3, Part G, 5.2.1).
    public static let defaultMTU = 23
    /// How long a transaction may take (Vol 3, Part F, 3.3.3).
    public static var transactionTimeout: Duration { .nanoseconds(Int64(transactionNanoseconds)) }

    private static var transactionNanoseconds: UInt64 { 30_000_000_000 }

    /// What a received PDU is, and so who is to have it.
    public enum Inbound: Hashable, Sendable {
        /// For the server, which will call ``Bearer/responseWillBeSent()``.
        case request(Opcode)
        /// No request that we know: to be answered with Request Not Supported.
        case unsupportedRequest(opcode: UInt8)
        /// A request longer than ATT_MTU: to be answered with Invalid PDU, with the handle 0x0000 (Vol 3, Part F, 3.4.1.1).
        ///
        /// Without an answer the client would wait for its transaction timer and then give up the bearer.
        case oversizedRequest(opcode: UInt8, length: Int)
        /// For the server, which does not answer it.
        case command(Opcode)
        /// A command that we do not know, to be ignored (Vol 3, Part F, 3.3).
        case ignoredCommand(opcode: UInt8)
        /// The answer to the request in flight, or an Error Response to it.
        case response(Opcode)
        /// For the client, which does not answer it.
        case notification(Opcode)
        /// To be confirmed; the owner calls ``Bearer/confirmationWillBeSent()``.
        case indication
        /// The client has our indication; the next may be sent.
        case confirmation
        /// Against the rules: dropped and counted.
        case violation(BearerViolation)
        /// The bearer is dead; whatever comes is dropped.
        case dead
    }

    /// What we offer as our receive MTU.
    public let offeredMTU: Int
    /// ATT_MTU as it is now.
    public private(set) var mtu = Bearer.defaultMTU
    /// Whether the transaction timer has run out.
    public private(set) var isDead = false
    /// Whether we have made an MTU exchange as the client; only one is allowed (Vol 3, Part F, 3.4.2.1).
    public private(set) var hasExchangedMTU = false

    private var requestInFlight: Opcode?
    private var requestDeadline: Instant?
    private var isIndicationInFlight = false
    private var indicationDeadline: Instant?
    private var isServing = false
    private var isConfirming = false

    /// - Parameter offeredMTU: in octets; taken as 23 where it is less.
    public init(offeredMTU: Int = 517) {
        self.offeredMTU = max(offeredMTU, Bearer.defaultMTU)
    }

    /// When ``advance(to:)`` wants to be called, if at all.
    public var deadline: Instant? {
        guard let requestDeadline else { return indicationDeadline }
        guard let indicationDeadline else { return requestDeadline }
        return min(requestDeadline, indicationDeadline)
    }

    /// The request whose response is awaited.
    public var awaitedRequest: Opcode? { requestInFlight }

    // MARK: Sending

    /// To be called before a request is sent; where it throws, nothing has changed and the request is not to be sent.
    ///
    /// Starts the transaction timer.
    public mutating func requestWillBeSent(_ opcode: Opcode, at now: Instant) throws(BearerError) {
        if isDead { throw .dead }
        if opcode.kind != .request { throw .notARequest(opcode) }
        if requestInFlight != nil { throw .requestInFlight }
        if opcode == .exchangeMTURequest, hasExchangedMTU { throw .mtuExchanged }
        requestInFlight = opcode
        requestDeadline = now.advanced(byNanoseconds: Bearer.transactionNanoseconds)
        if opcode == .exchangeMTURequest { hasExchangedMTU = true }
    }

    /// To be called before an indication is sent; where it throws, nothing has changed and it is not to be sent.
    ///
    /// Starts the transaction timer.
    public mutating func indicationWillBeSent(at now: Instant) throws(BearerError) {
        if isDead { throw .dead }
        if isIndicationInFlight { throw .indicationInFlight }
        isIndicationInFlight = true
        indicationDeadline = now.advanced(byNanoseconds: Bearer.transactionNanoseconds)
    }

    /// To be called when the response to the peer's request is sent.
    public mutating func responseWillBeSent() {
        isServing = false
    }

    /// To be called when the peer's indication is confirmed.
    public mutating func confirmationWillBeSent() {
        isConfirming = false
    }

    // MARK: Receiving

    /// Tells what a PDU that has come is and takes note of it.
    ///
    /// A response or a confirmation stops its transaction timer. After a request or an indication, no other is taken
    /// until the owner has answered it and the answer has left the host: a peer that does not take its answers cannot make
    /// the owner queue more of them (Vol 3, Part F, 3.3.2).
    ///
    /// - Parameters:
    ///   - isReplyUnsent: whether a response to the peer is still queued in the host.
    ///   - isConfirmationUnsent: whether a confirmation to the peer is still queued in the host.
    public mutating func receive(
        _ pdu: RawSpan,
        isReplyUnsent: Bool = false,
        isConfirmationUnsent: Bool = false
    ) -> Inbound {
        if isDead { return .dead }
        guard let value = pdu[checked: 0] else { return .violation(.emptyPDU) }
        guard let opcode = Opcode(rawValue: value) else { return receiveUnknown(value, isReplyUnsent: isReplyUnsent) }
        // A response that is too long has lost nothing: who waits for it takes what ATT_MTU allows.
        if pdu.byteCount > mtu, opcode.kind != .response {
            return receiveOversized(opcode, length: pdu.byteCount, isReplyUnsent: isReplyUnsent)
        }
        switch opcode.kind {
        case .request:
            if isServing || isReplyUnsent { return .violation(.requestWhileBusy(opcode: value)) }
            isServing = true
            return .request(opcode)
        case .response: return receiveResponse(opcode, pdu)
        case .command: return .command(opcode)
        case .notification: return .notification(opcode)
        case .indication:
            if isConfirming || isConfirmationUnsent { return .violation(.indicationWhileBusy) }
            isConfirming = true
            return .indication
        case .confirmation:
            if !isIndicationInFlight { return .violation(.unexpectedConfirmation) }
            isIndicationInFlight = false
            indicationDeadline = nil
            return .confirmation
        }
    }

    /// Commands, notifications, indications and confirmations have no error response, so they are dropped.
    private func receiveOversized(_ opcode: Opcode, length: Int, isReplyUnsent: Bool) -> Inbound {
        guard opcode.kind == .request else { return .violation(.oversizedPDU(length: length)) }
        if isServing || isReplyUnsent { return .violation(.requestWhileBusy(opcode: opcode.rawValue)) }
        return .oversizedRequest(opcode: opcode.rawValue, length: length)
    }

    /// An unknown opcode is a command where its bit 6 says so, otherwise a request (Vol 3, Part F, 3.3).
    private mutating func receiveUnknown(_ opcode: UInt8, isReplyUnsent: Bool) -> Inbound {
        if opcode & 0x40 != 0 { return .ignoredCommand(opcode: opcode) }
        if isServing || isReplyUnsent { return .violation(.requestWhileBusy(opcode: opcode)) }
        return .unsupportedRequest(opcode: opcode)
    }

    private mutating func receiveResponse(_ opcode: Opcode, _ pdu: RawSpan) -> Inbound {
        guard let request = requestInFlight else { return .violation(.unexpectedResponse(opcode: opcode.rawValue)) }
        if opcode == .errorResponse {
            guard let error = try? ErrorResponse(decoding: pdu) else { return .violation(.malformedErrorResponse) }
            guard error.requestOpcode == request.rawValue else {
                return .violation(.unexpectedResponse(opcode: opcode.rawValue))
            }
        } else if opcode != request.response {
            return .violation(.unexpectedResponse(opcode: opcode.rawValue))
        }
        requestInFlight = nil
        requestDeadline = nil
        return .response(opcode)
    }

    // MARK: MTU

    /// Sets ATT_MTU after an exchange: the lesser of both, and never below 23 (Vol 3, Part F, 3.4.2.2).
    ///
    /// As the client, on the response; as the server, once the response is sent.
    ///
    /// - Returns: the new ATT_MTU.
    @discardableResult
    public mutating func exchangeMTU(peer: UInt16) -> Int {
        mtu = max(Bearer.defaultMTU, min(offeredMTU, Int(peer)))
        return mtu
    }

    // MARK: Time

    /// Ends the bearer when a transaction has taken too long; tells whether it has just died.
    public mutating func advance(to now: Instant) -> Bool {
        guard !isDead, let deadline, deadline <= now else { return false }
        isDead = true
        requestInFlight = nil
        requestDeadline = nil
        isIndicationInFlight = false
        indicationDeadline = nil
        return true
    }
}
