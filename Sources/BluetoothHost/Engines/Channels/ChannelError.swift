import BLEL2CAP

/// Why an L2CAP channel could not be opened or used.
public enum ChannelError: Error, Hashable, Sendable {
    /// The peer refused the channel (Vol 3, Part A, 4.23 and 4.26).
    case refused(CreditBasedConnectionResult)
    /// The peer does not support channels of this kind.
    case notUnderstood
    /// The peer's response broke the protocol.
    case invalidResponse
    /// The link has the maximum number of channels.
    case tooManyChannels
    /// Another service has this PSM.
    case psmInUse(UInt16)
    /// All PSMs of the dynamic range are in use.
    case noPSMLeft
    /// The SDU is longer than the peer's MTU, which is given in bytes.
    case exceedsMTU(Int)
    /// The peer refused the new lengths (Vol 3, Part A, 4.28).
    case reconfigurationRefused(CreditBasedReconfigureResult)
    /// The channel has ended.
    case ended(ChannelEnd)
}

/// How an open L2CAP channel ended.
public enum ChannelEnd: Hashable, Sendable {
    /// This device closed the channel.
    case byUs
    /// The peer closed the channel.
    case byPeer
    /// The peer violated the rules of the channel, so the host ended it.
    case violation(CreditBasedChannel.Violation)
    /// The link to a bonded peer is no longer encrypted. Another device may be using the peer's address.
    case unverifiedPeer
    /// The link ended.
    case disconnected(DisconnectionReason)
}

extension ChannelError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .refused(let result): "the peer refuses the channel: \(result)"
        case .notUnderstood: "the peer has no credit-based channels"
        case .invalidResponse: "the peer's response to a request for a channel breaks the protocol"
        case .tooManyChannels: "the link has as many channels as it may have; close one"
        case .psmInUse(let psm): "PSM \(psm) has a service already"
        case .noPSMLeft: "every PSM of the dynamic range has a service"
        case .exceedsMTU(let mtu): "the peer receives at most \(mtu) bytes at once"
        case .reconfigurationRefused(let result): "the peer refuses the lengths: result \(result.rawValue)"
        case .ended(let end): "\(end)"
        }
    }
}

extension ChannelEnd: CustomStringConvertible {
    public var description: String {
        switch self {
        case .byUs: "the channel was closed"
        case .byPeer: "the peer has closed the channel"
        case .violation(let violation): "the channel was closed since the peer broke its rules: \(violation)"
        case .unverifiedPeer:
            "the channel was closed because the link is not encrypted any more; encrypt it and open another channel"
        case .disconnected(let reason): "disconnected: \(reason)"
        }
    }
}
