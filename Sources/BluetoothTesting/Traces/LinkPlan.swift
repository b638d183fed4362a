import BLEATT
import BLEByteCoding
import BLEL2CAP
import BLESMP
import BluetoothHost
import BluetoothTypes

/// The frames of a traced link to play, and the resulting configuration of the host.
struct LinkPlan {
    /// A stream of frames that one device sends in the same order each time. Frames of different streams do not wait
    /// for each other: a server may notify a value at the moment in which it receives a request.
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
                switch payload.first.flatMap(ATTOpcode.init(rawValue:))?.kind {
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
        /// Whether the host must send it.
        let isOurs: Bool
        /// The trace's frame; nil for the end of a pairing that cannot be replayed.
        let frame: TracedLink.Frame?

        /// The stream whose order the frame keeps.
        var stream: Stream { Stream(channel, payload) }

        /// For the attribute channel: whether the sender is the client, so that the frame goes to the other device's
        /// server.
        var isFromServersClient: Bool {
            switch payload.first.flatMap(ATTOpcode.init(rawValue:))?.kind {
            case .request, .command, .confirmation: true
            case .response, .notification, .indication, nil: false
            }
        }
    }

    /// The role of the host on the link.
    let isCentral: Bool
    private(set) var steps: [Step] = []
    /// The ATT_MTU that the host offers.
    private(set) var mtu: UInt16 = 23
    /// The policy under which the host begins a pairing as the traced device did.
    private(set) var policy = SecurityPolicy()
    /// Whether the peer had out-of-band data of the host.
    private(set) var peerHasOutOfBandData = false

    init(_ link: TracedLink, isCentral: Bool) {
        self.isCentral = isCentral
        // If the host takes the peer's role, it receives the frames that the recorded host has sent.
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

    /// Adds a pairing up to the features and then ends it, because the trace does not contain its secrets.
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

    /// Takes the policy from the Pairing Request or Response, which have the same parameters
    /// (Vol 3, Part H, 3.5.1 and 3.5.2).
    private mutating func noteFeatures(_ pdu: [UInt8]) {
        guard pdu.count == 7 else { return }
        policy.ioCapability = IOCapability(rawValue: pdu[1]) ?? .noInputNoOutput
        policy.bonds = pdu[3] & 0x03 == 1
        policy.requiresAuthentication = pdu[3] & 0x04 != 0
        policy.offersSecureConnections = pdu[3] & 0x08 != 0
        policy.minimumKeySizeInBytes = pdu[4]
        guard pdu[2] == 1 else { return }
        policy.peerOutOfBandData =
            policy.offersSecureConnections ? .secureConnections(confirm: 0, random: 0) : .temporaryKey(0)
    }

    /// The operation that makes the host send a step's frame; nil for answers.
    func initiative(at index: Int) -> LinkInitiative? {
        let step = steps[index]
        switch step.channel {
        case .attribute: return LinkInitiative(of: step.payload, before: steps[(index + 1)...].lazy)
        case .securityManager: return isCentral ? .pairing : nil
        default: return nil
        }
    }
}
