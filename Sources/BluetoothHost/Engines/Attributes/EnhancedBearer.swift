import BLEATT
import BLEByteCoding
import BLEGATT
import DequeModule

/// One enhanced ATT bearer of a link: an L2CAP channel that carries one ATT PDU in each SDU (Vol 3, Part G, 5.3).
///
/// The bearer has transactions of its own: the requests of this host's client, and those of the peer's client. It also
/// has a queue of prepared writes and an ATT_MTU of its own.
final class EnhancedBearer {
    let channel: HostChannelIdentifier
    var transactions: Bearer
    let client = BLEGATT.Client()
    var serverState: ServerSession.BearerState
    /// The calls of the procedures that the client has, the oldest first.
    private(set) var calls = Deque<ProcedureCall>()
    /// The calls that were cancelled while the bearer waited for a response. The server may not have performed them
    /// yet.
    private var cancelledCalls: [ProcedureCall] = []
    /// Why the link could not be made as secure as the server requires, while the ends of procedures are taken.
    var elevationFailure: HostError?
    /// The number of PDUs that were queued on the channel.
    private var queuedCount = 0
    /// The value of ``queuedCount`` after the last response, and after the last confirmation.
    private var lastReply = 0
    private var lastConfirmation = 0

    /// - Parameters:
    ///   - mtu: the longest SDU that this host receives, in bytes.
    ///   - peerMTU: the longest SDU that the peer receives, in bytes.
    init(_ channel: HostChannelIdentifier, mtu: Int, peerMTU: Int) {
        self.channel = channel
        transactions = Bearer(enhancedWithMTU: mtu, peerMTU: peerMTU)
        serverState = ServerSession.BearerState(mtu: transactions.mtu)
        client.elevatesSecurity = true
    }

    /// ATT_MTU in bytes.
    var mtu: Int { transactions.mtu }

    /// Whether the channel still exists, so that procedures can start.
    var isOpen: Bool { !client.isClosed }

    /// Sets ATT_MTU, because the peer has changed the length of the SDUs that it receives.
    func channelMTUsChanged(to mtu: Int, peerMTU: Int) {
        transactions.channelMTUsChanged(to: mtu, peerMTU: peerMTU)
        serverState.mtu = transactions.mtu
    }

    // MARK: Client

    /// Gives a procedure to the bearer's client, which puts out its end.
    func start(_ call: borrowing ProcedureCall) {
        calls.append(copy call)
        client.perform(call.run)
    }

    /// Writes the next request, if none is in flight.
    ///
    /// - Returns: the opcode of the request.
    func nextRequest(into buffer: inout PacketBuffer) -> ATTOpcode? {
        guard transactions.awaitedRequest == nil, !transactions.isDead else { return nil }
        return client.nextRequest(mtu: mtu, into: &buffer)
    }

    /// Whether the bearer waits for a response, or for the security that the server requires.
    var isAnswerAwaited: Bool { transactions.awaitedRequest != nil || client.isElevating }

    /// The number of procedures that the server may have to perform.
    var load: Int { calls.count + cancelledCalls.count }

    /// Keeps a call that was cancelled until the server has answered.
    func keepCancelled(_ call: borrowing ProcedureCall) {
        cancelledCalls.append(copy call)
    }

    /// Removes the calls that were cancelled, because the server has answered or the bearer ends.
    func takeCancelled() -> [ProcedureCall] {
        if cancelledCalls.isEmpty { return [] }
        defer { cancelledCalls = [] }
        return cancelledCalls
    }

    /// Removes the call of a procedure that has ended.
    func takeCall(of run: ProcedureRun) -> ProcedureCall? {
        calls.firstIndex { $0.run === run }.map { calls.remove(at: $0) }
    }

    /// Ends the bearer's client.
    ///
    /// - Returns: the calls whose procedures had a request in flight, and those that have not started.
    func close() -> (running: [ProcedureCall], waiting: [ProcedureCall]) {
        let runs = client.closeReturningWaiting()
        let all = calls
        calls = []
        while client.takeOutput() != nil {}
        return (
            all.filter { call in !runs.contains { $0 === call.run } },
            all.filter { call in runs.contains { $0 === call.run } }
        )
    }

    // MARK: Frames

    /// Records that a PDU is queued on the channel.
    func willQueue(_ kind: FrameKind) {
        queuedCount += 1
        switch kind {
        case .reply: lastReply = queuedCount
        case .confirmation: lastConfirmation = queuedCount
        default: break
        }
    }

    /// Classifies a received PDU.
    ///
    /// - Parameter unsentCount: the number of PDUs that the channel has not sent completely.
    func receive(_ pdu: RawSpan, unsentCount: Int) -> Bearer.Inbound {
        let sentCount = queuedCount - unsentCount
        return transactions.receive(
            pdu,
            isReplyUnsent: lastReply > sentCount,
            isConfirmationUnsent: lastConfirmation > sentCount
        )
    }
}
