import BLEByteCoding
import BluetoothTypes

/// The reason why a PDU cannot be sent on a bearer now.
public enum BearerError: Error, Hashable, Sendable {
    /// A request is in flight; the next waits for its response.
    case requestInFlight
    /// An indication is in flight; the next waits for its confirmation.
    case indicationInFlight
    /// MTUs were exchanged already; a client exchanges them once (Vol 3, Part F, 3.4.2.1).
    case mtuExchanged
    /// The opcode is not that of a request, so no response would arrive.
    case notARequest(ATTOpcode)
    /// A transaction has timed out: no further PDU is sent on this bearer.
    case dead
}

/// A violation of a bearer's rules by the peer.
public enum BearerViolation: Error, Hashable, Sendable {
    /// A PDU without an opcode.
    case emptyPDU
    /// A PDU longer than ATT_MTU; its length is in bytes.
    case oversizedPDU(length: Int)
    /// A response without a request, or to another request than the one in flight.
    case unexpectedResponse(opcode: UInt8)
    /// A confirmation although no indication of this device is in flight.
    case unexpectedConfirmation
    /// A request while another is being served.
    case requestWhileBusy(opcode: UInt8)
    /// An indication although the last one is not confirmed.
    case indicationWhileBusy
    /// An Error Response that could not be decoded.
    case malformedErrorResponse
    /// A Signed Write Command on an enhanced bearer, which must be encrypted (Vol 3, Part F, 3.4.5.4).
    case signedWriteOnEnhancedBearer
}

/// The order of PDUs on one ATT bearer (Vol 3, Part F, 3.3): one request and one indication in flight in each
/// direction, the transaction timer, and ATT_MTU.
///
/// The bearer decodes only the opcode. Its owner asks the bearer before it sends a PDU, and passes it each received
/// PDU. The client or the server then handles the contents.
///
/// The fixed channel of a link is one bearer. Enhanced bearers are L2CAP channels with enhanced credit-based flow
/// control (Vol 3, Part F, 3.2.11). Each has transactions and an ATT_MTU of its own. MTUs are not exchanged on an
/// enhanced bearer: its ATT_MTU is the smaller value of the MTUs of the channel.
public struct Bearer: Sendable {
    /// ATT_MTU before an exchange, and its minimum (Vol 3, Part G, 5.2.1).
    public static let defaultMTU = 23
    /// Minimum ATT_MTU of an enhanced bearer (Vol 3, Part G, 5.3.1).
    public static let minimumEnhancedMTU = 64
    /// Maximum duration of a transaction (Vol 3, Part F, 3.3.3).
    public static var transactionTimeout: Duration { .nanoseconds(Int64(transactionNanoseconds)) }

    private static var transactionNanoseconds: UInt64 { 30_000_000_000 }

    /// The meaning of a received PDU, which decides the part that handles it.
    public enum Inbound: Hashable, Sendable {
        /// A request for the server, which calls ``Bearer/responseWillBeSent()`` with its response.
        case request(ATTOpcode)
        /// An unknown request. The owner answers Request Not Supported.
        case unsupportedRequest(opcode: UInt8)
        /// A request longer than ATT_MTU. The owner answers Invalid PDU, with the handle 0x0000 (Vol 3, Part F,
        /// 3.4.1.1).
        ///
        /// Without an answer the client would wait until its transaction times out, and then end the bearer.
        case oversizedRequest(opcode: UInt8, length: Int)
        /// A command for the server, which does not answer it.
        case command(ATTOpcode)
        /// An unknown command, which is ignored (Vol 3, Part F, 3.3).
        case ignoredCommand(opcode: UInt8)
        /// The response to the request in flight, or an Error Response to it.
        case response(ATTOpcode)
        /// A notification for the client, which does not answer it.
        case notification(ATTOpcode)
        /// An indication. The owner calls ``Bearer/confirmationWillBeSent()`` and confirms it.
        case indication
        /// The confirmation of the indication in flight. The next one may be sent.
        case confirmation
        /// A violation of the rules. The PDU is dropped and counted.
        case violation(BearerViolation)
        /// The bearer is dead, so the PDU is dropped.
        case dead
    }

    /// The receive MTU that this device offers.
    public let offeredMTU: Int
    /// The current ATT_MTU.
    public private(set) var mtu = Bearer.defaultMTU
    /// Whether a transaction has timed out.
    public private(set) var isDead = false
    /// Whether this device, as the client, has exchanged MTUs; that is allowed once (Vol 3, Part F, 3.4.2.1).
    public private(set) var hasExchangedMTU = false
    /// Whether the bearer is a channel with enhanced credit-based flow control.
    public let isEnhanced: Bool

    private var requestInFlight: ATTOpcode?
    private var requestDeadline: Instant?
    private var isIndicationInFlight = false
    private var indicationDeadline: Instant?
    private var isServing = false
    private var isConfirming = false

    /// - Parameter offeredMTU: in bytes; values below 23 count as 23.
    public init(offeredMTU: Int = 517) {
        self.offeredMTU = max(offeredMTU, Bearer.defaultMTU)
        isEnhanced = false
    }

    /// Creates an enhanced bearer.
    ///
    /// - Parameters:
    ///   - mtu: the longest SDU that this device receives on the channel, in bytes.
    ///   - peerMTU: the longest SDU that the peer receives, in bytes.
    public init(enhancedWithMTU mtu: Int, peerMTU: Int) {
        offeredMTU = mtu
        isEnhanced = true
        hasExchangedMTU = true
        channelMTUsChanged(to: mtu, peerMTU: peerMTU)
    }

    /// The time at which to call ``advance(to:)``; nil if no transaction is in flight.
    public var deadline: Instant? {
        guard let requestDeadline else { return indicationDeadline }
        guard let indicationDeadline else { return requestDeadline }
        return min(requestDeadline, indicationDeadline)
    }

    /// The request in flight, whose response is awaited.
    public var awaitedRequest: ATTOpcode? { requestInFlight }

    // MARK: Sending

    /// Must be called before a request is sent. If it throws, nothing has changed and the request must not be sent.
    ///
    /// Starts the transaction timer.
    public mutating func requestWillBeSent(_ opcode: ATTOpcode, at now: Instant) throws(BearerError) {
        if isDead { throw .dead }
        if opcode.kind != .request { throw .notARequest(opcode) }
        if requestInFlight != nil { throw .requestInFlight }
        if opcode == .exchangeMTURequest, hasExchangedMTU { throw .mtuExchanged }
        requestInFlight = opcode
        requestDeadline = now.advanced(byNanoseconds: Bearer.transactionNanoseconds)
        if opcode == .exchangeMTURequest { hasExchangedMTU = true }
    }

    /// Must be called before an indication is sent. If it throws, nothing has changed and the indication must not be
    /// sent.
    ///
    /// Starts the transaction timer.
    public mutating func indicationWillBeSent(at now: Instant) throws(BearerError) {
        if isDead { throw .dead }
        if isIndicationInFlight { throw .indicationInFlight }
        isIndicationInFlight = true
        indicationDeadline = now.advanced(byNanoseconds: Bearer.transactionNanoseconds)
    }

    /// Must be called when the response to the peer's request is sent.
    public mutating func responseWillBeSent() {
        isServing = false
    }

    /// Must be called when the peer's indication is confirmed.
    public mutating func confirmationWillBeSent() {
        isConfirming = false
    }

    // MARK: Receiving

    /// Classifies and records a received PDU.
    ///
    /// A response or a confirmation stops its transaction timer. After a request or an indication, the next one is
    /// accepted only when the owner has answered it and the answer has left the host. So a peer that does not take its
    /// answers cannot make the owner queue more of them (Vol 3, Part F, 3.3.2).
    ///
    /// - Parameters:
    ///   - pdu: the PDU, from its opcode on.
    ///   - isReplyUnsent: whether a response to the peer is still queued in the host.
    ///   - isConfirmationUnsent: whether a confirmation to the peer is still queued in the host.
    public mutating func receive(
        _ pdu: RawSpan,
        isReplyUnsent: Bool = false,
        isConfirmationUnsent: Bool = false
    ) -> Inbound {
        if isDead { return .dead }
        guard let value = pdu[checked: 0] else { return .violation(.emptyPDU) }
        guard let opcode = ATTOpcode(rawValue: value) else {
            return receiveUnknown(value, isReplyUnsent: isReplyUnsent)
        }
        // A response that is too long is accepted: the client uses the part that ATT_MTU allows.
        if pdu.byteCount > mtu, opcode.kind != .response {
            return receiveOversized(opcode, length: pdu.byteCount, isReplyUnsent: isReplyUnsent)
        }
        switch opcode.kind {
        case .request:
            if isServing || isReplyUnsent { return .violation(.requestWhileBusy(opcode: value)) }
            if isEnhanced, opcode == .exchangeMTURequest { return .unsupportedRequest(opcode: value) }
            isServing = true
            return .request(opcode)
        case .response: return receiveResponse(opcode, pdu)
        case .command:
            if isEnhanced, opcode == .signedWriteCommand { return .violation(.signedWriteOnEnhancedBearer) }
            return .command(opcode)
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
    private func receiveOversized(_ opcode: ATTOpcode, length: Int, isReplyUnsent: Bool) -> Inbound {
        guard opcode.kind == .request else { return .violation(.oversizedPDU(length: length)) }
        if isServing || isReplyUnsent { return .violation(.requestWhileBusy(opcode: opcode.rawValue)) }
        return .oversizedRequest(opcode: opcode.rawValue, length: length)
    }

    /// An unknown opcode with bit 6 set is a command, otherwise a request (Vol 3, Part F, 3.3).
    private mutating func receiveUnknown(_ opcode: UInt8, isReplyUnsent: Bool) -> Inbound {
        if opcode & 0x40 != 0 { return .ignoredCommand(opcode: opcode) }
        if isServing || isReplyUnsent { return .violation(.requestWhileBusy(opcode: opcode)) }
        return .unsupportedRequest(opcode: opcode)
    }

    private mutating func receiveResponse(_ opcode: ATTOpcode, _ pdu: RawSpan) -> Inbound {
        guard let request = requestInFlight else { return .violation(.unexpectedResponse(opcode: opcode.rawValue)) }
        if opcode == .errorResponse {
            guard let error = try? ErrorResponse(decoding: pdu) else { return .violation(.malformedErrorResponse) }
            guard error.requestOpcode == request.rawValue else {
                return .violation(.unexpectedResponse(opcode: opcode.rawValue))
            }
            if request == .exchangeMTURequest { mtuExchangeFailed() }
        } else if opcode != request.response {
            return .violation(.unexpectedResponse(opcode: opcode.rawValue))
        }
        requestInFlight = nil
        requestDeadline = nil
        return .response(opcode)
    }

    // MARK: MTU

    /// Permits the client another exchange of MTUs, because the server has refused the last one or its response was not
    /// used.
    public mutating func mtuExchangeFailed() {
        if !isEnhanced { hasExchangedMTU = false }
    }

    /// Sets ATT_MTU after an exchange: the smaller value of both sides, and at least 23 (Vol 3, Part F, 3.4.2.2).
    ///
    /// The client calls this when it receives the response; the server, when it has sent the response.
    ///
    /// - Returns: the new ATT_MTU.
    @discardableResult
    public mutating func exchangeMTU(peer: UInt16) -> Int {
        mtu = max(Bearer.defaultMTU, min(offeredMTU, Int(peer)))
        return mtu
    }

    /// Sets the ATT_MTU of an enhanced bearer, because the MTU of its channel has changed: the smaller value of both
    /// sides, and at least 64 (Vol 3, Part G, 5.3.1).
    public mutating func channelMTUsChanged(to mtu: Int, peerMTU: Int) {
        self.mtu = max(Bearer.minimumEnhancedMTU, min(mtu, peerMTU))
    }

    // MARK: Time

    /// Ends the bearer if a transaction has timed out.
    ///
    /// - Returns: whether this call ended the bearer.
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
