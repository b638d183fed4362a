import BLECapture
import BLEHCI
import BLEL2CAP

/// The state of one link, from its connection to its disconnection.
final class LinkState {
    /// The link's number in the capture.
    let number: Int
    let handle: UInt16
    let peer: PeerReference?
    let isCentral: Bool?
    /// The peer's attributes that the capture shows.
    let peerDatabase: ObservedDatabase
    /// The adapter's own attributes.
    let localDatabase: ObservedDatabase
    /// The ATT bearer of the fixed channel.
    let bearer = AttributeBearerState()
    private var sent = FrameReassembly()
    private var received = FrameReassembly()
    /// The direction of the last fragment.
    private var lastDirection = CaptureDirection.controllerToHost
    /// Connection-oriented channels, by the CID in the frames of each direction.
    private var channels: [DirectedIdentifier: ChannelState] = [:]
    /// Unanswered channel requests, by the direction of the request and its identifier.
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

    /// Reassembles fragments, and calls `deliver` with each complete frame.
    ///
    /// - Parameter missing: the number of bytes that the recorder has cut off the fragment.
    func receive(
        _ fragment: RawSpan,
        missing: Int,
        isStart: Bool,
        _ direction: CaptureDirection,
        deliver: FrameReassembly.Receiver
    ) -> Reassembler.Outcome {
        lastDirection = direction
        return switch direction {
        case .hostToController:
            sent.receive(fragment, missing: missing, isStart: isStart, deliver: deliver)
        case .controllerToHost:
            received.receive(fragment, missing: missing, isStart: isStart, deliver: deliver)
        }
    }

    /// Returns the direction of a fragment by its Packet Boundary flag, for a capture that does not give it.
    ///
    /// A host starts frames on LE with another flag than a controller (Vol 4, Part E, 5.4.2). A continuing fragment
    /// belongs to the frame that is incomplete.
    ///
    /// - Returns: nil if the flag does not determine the direction.
    func direction(of flag: PacketBoundaryFlag) -> CaptureDirection? {
        switch flag {
        case .firstNonFlushable: return .hostToController
        case .firstFlushable: return isLE ? .controllerToHost : nil
        case .continuing:
            switch (sent.isIncomplete, received.isIncomplete) {
            case (true, false): return .hostToController
            case (false, true): return .controllerToHost
            case (true, true): return lastDirection
            case (false, false): return nil
            }
        case .complete: return nil
        }
    }

    /// Whether this is an LE link. A link that was made before the capture counts as one.
    private var isLE: Bool { peer.map { $0.type != nil } ?? true }

    /// Returns the attributes of the server that sends its PDUs in this direction.
    func database(ofServerSending direction: CaptureDirection) -> ObservedDatabase {
        direction == .hostToController ? localDatabase : peerDatabase
    }

    /// Returns the connection-oriented channel of a frame.
    func channel(_ identifier: UInt16, _ direction: CaptureDirection) -> ChannelState? {
        channels[DirectedIdentifier(direction: direction, identifier: identifier)]
    }
}

extension LinkState {
    /// Maximum number of proposals, and of channel ends. A channel has two ends. Excess channels are not followed.
    private static let limit = 512

    func propose(_ proposal: ChannelProposal, identifier: UInt8, from direction: CaptureDirection) {
        guard proposals.count < LinkState.limit else { return }
        proposals[DirectedIdentifier(direction: direction, identifier: UInt16(identifier))] = proposal
    }

    /// Handles the answer to a proposal.
    ///
    /// - Parameters:
    ///   - destinations: the CIDs of the answering device; zero for refused channels.
    ///   - direction: the direction of the answer.
    func answer(identifier: UInt8, destinations: [UInt16], isFinal: Bool, from direction: CaptureDirection) {
        let key = DirectedIdentifier(direction: direction.opposite, identifier: UInt16(identifier))
        guard let proposal = proposals[key] else { return }
        if isFinal { proposals[key] = nil }
        for (source, destination) in zip(proposal.sources, destinations)
        where source != 0 && destination != 0 && channels.count < LinkState.limit {
            let channel = ChannelState(psm: proposal.psm, isCreditBased: proposal.isCreditBased)
            // A frame carries the CID of its destination.
            channels[DirectedIdentifier(direction: direction, identifier: source)] = channel
            channels[DirectedIdentifier(direction: direction.opposite, identifier: destination)] = channel
        }
    }

    /// Removes a channel.
    ///
    /// - Parameter direction: the direction of the request. Its destination is the peer's CID, and its source is the
    ///   sender's CID.
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

/// An SDU that is sent in K-frames (Vol 3, Part A, 3.4.3).
struct ServiceDataUnit {
    /// The number of bytes that have not arrived yet.
    var remaining = 0
    /// The received bytes of an SDU on an ATT bearer, up to the first byte that the recorder has cut off. Other SDUs
    /// are not kept.
    private(set) var collected: [UInt8] = []
    /// The number of bytes after ``collected`` that are not known, or not kept.
    private(set) var missing = 0

    /// Begins the next SDU.
    mutating func begin() {
        collected.removeAll(keepingCapacity: true)
        missing = 0
    }

    /// Adds the bytes of a K-frame.
    ///
    /// - Parameter cutLength: the number of bytes that the recorder has cut off after `octets`.
    mutating func collect(_ octets: [UInt8], cutLength: Int) {
        if missing == 0 { collected += octets } else { missing += octets.count }
        missing += cutLength
    }
}

extension CaptureDirection {
    var opposite: CaptureDirection { self == .hostToController ? .controllerToHost : .hostToController }
}
