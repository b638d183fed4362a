import ATT
import BluetoothHost
import BluetoothTypes
import ByteCoding
import L2CAP
import SMP

/// Which frames of a traced link are played, and what the host is to be told for it.
struct LinkPlan {
    /// Frames that one device sends in the same order each time. Those of different streams do not wait for each other: a
    /// server that is asked something may have a value to notify at that moment.
    enum Stream: Hashable {
        case requests
        case responses
        case values
        case confirmations
        case channel(ChannelIdentifier)

        init(_ channel: ChannelIdentifier, _ payload: [UInt8]) {
            guard channel == .attribute else {
                self = .channel(channel)
                return
            }
            self =
                switch payload.first.flatMap(Opcode.init(rawValue:))?.kind {
                case .request, .command: .requests
                case .notification, .indication: .values
                case .confirmation: .confirmations
                case .response, nil: .responses
                }
        }
    }

    struct Step {
        let channel: ChannelIdentifier
        let payload: [UInt8]
        /// Whether the host is to send it.
        let isOurs: Bool
        /// The trace's frame; nil for what ends a pairing that cannot be followed.
        let frame: TracedLink.Frame?

        /// Of what it is one of the frames that keep their order.
        var stream: Stream { Stream(channel, payload) }

        /// Of the attribute channel: whether a client sends it, so that it goes to the other's server.
        var isFromServersClient: Bool {
            switch payload.first.flatMap(Opcode.init(rawValue:))?.kind {
            case .request, .command, .confirmation: true
            case .response, .notification, .indication, nil: false
            }
        }
    }

    /// What the host is on the link.
    let isCentral: Bool
    private(set) var steps: [Step] = []
    /// The ATT_MTU that the host is to offer.
    private(set) var mtu: UInt16 = 23
    /// Under which the host begins a pairing as the trace's device had begun it.
    private(set) var policy = SecurityPolicy()
    /// Whether the peer had been given data of the host another way.
    private(set) var peerHasOutOfBandData = false

    init(_ link: TracedLink, isCentral: Bool) {
        self.isCentral = isCentral
        // In the peer's place, what the recorded host has sent is what comes.
        let isInPeersPlace = link.isCentral.map { $0 != isCentral } ?? false
        policy.securesOnDemand = false
        policy.pairsOnRequest = false
        policy.justWorks = .always
        for frame in link.frames { add(frame, isOurs: frame.isSent != isInPeersPlace) }
    }

    private mutating func add(_ frame: TracedLink.Frame, isOurs: Bool) {
        let step = Step(channel: frame.channel, payload: frame.payload, isOurs: isOurs, frame: frame)
        switch frame.channel {
        case .attribute:
            if isOurs { noteMTU(frame.payload) }
            steps.append(step)
        case .signaling where isCentral:
            let code = frame.payload.first.map(SignalingCode.init(rawValue:))
            let isUpdate =
                isOurs ? code == .connectionParameterUpdateResponse : code == .connectionParameterUpdateRequest
            if isUpdate { steps.append(step) }
        case .securityManager: addPairing(step)
        default: break
        }
    }

    private mutating func noteMTU(_ pdu: [UInt8]) {
        if let request = try? ExchangeMTURequest(decoding: pdu.rawSpan) { mtu = max(23, request.clientReceiveMTU) }
        if let response = try? ExchangeMTUResponse(decoding: pdu.rawSpan) { mtu = max(23, response.serverReceiveMTU) }
    }

    /// A pairing is played as far as the features; then it is ended, since its secrets are not in the trace.
    private mutating func addPairing(_ step: Step) {
        let failed: [UInt8] = [CommandCode.pairingFailed.rawValue, PairingFailedReason.unspecifiedReason.rawValue]
        let end = Step(channel: .securityManager, payload: failed, isOurs: false, frame: nil)
        switch (step.payload.first.flatMap(CommandCode.init(rawValue:)), step.isOurs) {
        case (.pairingRequest, false) where !isCentral:
            peerHasOutOfBandData = peerHasOutOfBandData || step.payload.dropFirst(2).first == 1
            steps.append(step)
        case (.pairingRequest, true) where isCentral, (.pairingResponse, true) where !isCentral:
            noteFeatures(step.payload)
            steps += [step, end]
        default: break
        }
    }

    /// Takes the policy from the Pairing Request or Response, whose parameters lie alike (Vol 3, Part H, 3.5.1 and 3.5.2).
    private mutating func noteFeatures(_ pdu: [UInt8]) {
        guard pdu.count == 7 else { return }
        policy.ioCapability = IOCapability(rawValue: pdu[1]) ?? .noInputNoOutput
        policy.bonds = pdu[3] & 0x03 == 1
        policy.requiresAuthentication = pdu[3] & 0x04 != 0
        policy.offersSecureConnections = pdu[3] & 0x08 != 0
        policy.minimumKeySize = pdu[4]
        guard pdu[2] == 1 else { return }
        policy.peerOutOfBandData =
            policy.offersSecureConnections ? .secureConnections(confirm: 0, random: 0) : .temporaryKey(0)
    }

    /// What the host is to do by itself so that it sends a step's frame; nil for answers.
    func initiative(at index: Int) -> LinkInitiative? {
        let step = steps[index]
        switch step.channel {
        case .attribute: return LinkInitiative(of: step.payload, before: steps[(index + 1)...].lazy)
        case .securityManager: return isCentral ? .pairing : nil
        default: return nil
        }
    }
}
