import Capture
import L2CAP

/// What is known of one link, from its connection to its disconnection.
final class LinkState {
    /// Counted through the capture.
    let number: Int
    let handle: UInt16
    let peer: PeerReference?
    let isCentral: Bool?
    /// The peer's attributes, as far as the capture shows them.
    let peerDatabase: ObservedDatabase
    /// The adapter's own attributes.
    let localDatabase: ObservedDatabase
    /// The bearer of the fixed channel.
    let bearer = AttributeBearerState()
    private var sent = Reassembler(maximumPayloadLength: 0xFFFF)
    private var received = Reassembler(maximumPayloadLength: 0xFFFF)
    /// Connection-oriented channels by the CID in the frames of each direction.
    private var channels: [DirectedIdentifier: ChannelState] = [:]
    /// Requests for channels that have not been answered, by who asked and the identifier.
    private var proposals: [DirectedIdentifier: ChannelProposal] = [:]

    struct DirectedIdentifier: Hashable {
        let direction: CaptureDirection
        let identifier: UInt16
    }

    struct ChannelProposal {
        let psm: UInt16
        let sources: [UInt16]
        let isCreditBased: Bool
    }

    init(
        number: Int,
        handle: UInt16,
        peer: PeerReference?,
        isCentral: Bool?,
        peerDatabase: ObservedDatabase,
        localDatabase: ObservedDatabase
    ) {
        self.number = number
        self.handle = handle
        self.peer = peer
        self.isCentral = isCentral
        self.peerDatabase = peerDatabase
        self.localDatabase = localDatabase
    }

    var reference: LinkReference { LinkReference(number: number, handle: handle, peer: peer, isCentral: isCentral) }

    /// Puts fragments together; `deliver` has a frame that is complete.
    func receive(
        _ fragment: RawSpan,
        isStart: Bool,
        _ direction: CaptureDirection,
        deliver: (borrowing Frame) -> Void
    ) -> Reassembler.Outcome {
        switch direction {
        case .hostToController: sent.receive(fragment, isStart: isStart, deliver: deliver)
        case .controllerToHost: received.receive(fragment, isStart: isStart, deliver: deliver)
        }
    }

    /// The attributes that a server has whose PDUs go in this direction.
    func database(ofServerSending direction: CaptureDirection) -> ObservedDatabase {
        direction == .hostToController ? localDatabase : peerDatabase
    }

    /// The connection-oriented channel to which a frame belongs.
    func channel(_ identifier: UInt16, _ direction: CaptureDirection) -> ChannelState? {
        channels[DirectedIdentifier(direction: direction, identifier: identifier)]
    }
}

extension LinkState {
    /// What one link may have open or proposed; what is more is not followed.
    private static let limit = 512

    func propose(_ proposal: ChannelProposal, identifier: UInt8, from direction: CaptureDirection) {
        guard proposals.count < LinkState.limit else { return }
        proposals[DirectedIdentifier(direction: direction, identifier: UInt16(identifier))] = proposal
    }

    /// Takes note of the answer to a proposal.
    ///
    /// - Parameters:
    ///   - destinations: the channels' ends on the device that answers; zero for those that were refused.
    ///   - direction: the answer's.
    func answer(identifier: UInt8, destinations: [UInt16], isFinal: Bool, from direction: CaptureDirection) {
        let key = DirectedIdentifier(direction: direction.opposite, identifier: UInt16(identifier))
        guard let proposal = proposals[key] else { return }
        if isFinal { proposals[key] = nil }
        for (source, destination) in zip(proposal.sources, destinations)
        where source != 0 && destination != 0 && channels.count < LinkState.limit {
            let channel = ChannelState(psm: proposal.psm, isCreditBased: proposal.isCreditBased)
            // Frames carry the CID of the end that they go to.
            channels[DirectedIdentifier(direction: direction, identifier: source)] = channel
            channels[DirectedIdentifier(direction: direction.opposite, identifier: destination)] = channel
        }
    }

    /// Forgets a channel.
    ///
    /// - Parameter direction: of the request, whose destination is the peer's end and whose source is the sender's own.
    func close(destination: UInt16, source: UInt16, from direction: CaptureDirection) {
        channels[DirectedIdentifier(direction: direction, identifier: destination)] = nil
        channels[DirectedIdentifier(direction: direction.opposite, identifier: source)] = nil
    }
}

/// A connection-oriented channel.
final class ChannelState {
    let psm: UInt16
    let isCreditBased: Bool
    let bearer: AttributeBearerState?
    private var sent = ServiceDataUnit()
    private var received = ServiceDataUnit()

    init(psm: UInt16, isCreditBased: Bool) {
        self.psm = psm
        self.isCreditBased = isCreditBased
        bearer = psm == 0x1F || psm == 0x27 ? AttributeBearerState() : nil
    }

    func withUnit<Result>(_ direction: CaptureDirection, _ body: (inout ServiceDataUnit) -> Result) -> Result {
        direction == .hostToController ? body(&sent) : body(&received)
    }
}

/// An SDU that comes in K-frames (Vol 3, Part A, 3.4.3).
struct ServiceDataUnit {
    /// What is still to come.
    var remaining = 0
    /// What has come of an SDU on an ATT bearer; others are not kept.
    var collected: [UInt8] = []
}

extension CaptureDirection {
    var opposite: CaptureDirection { self == .hostToController ? .controllerToHost : .hostToController }
}
