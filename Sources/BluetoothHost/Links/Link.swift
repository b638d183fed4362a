import BLEATT
import BLEGATT
import BLEHCI
import BLEL2CAP
import BluetoothTypes
import OrderedCollections

/// An observer of a link's end.
enum EndObserver {
    /// A closure of an app.
    case app(@Sendable (DisconnectionReason) -> Void)
    /// A closure of the host itself, called at once.
    case host((DisconnectionReason) -> Void)
    /// A suspended call, which is resumed at once.
    case call(CallToken)
}

/// What a link reports to, besides the observers of the host.
struct LinkObservers {
    /// The observers of the link's end, by the identifiers that ``BluetoothHost/observeEnd(of:_:)`` returned.
    var ends: OrderedDictionary<UInt64, EndObserver> = [:]
    /// Called once when the link is established.
    var establishment: [@Sendable () -> Void] = []
    /// The question to the app, and how it is withdrawn.
    var question: (number: UInt64, withdraw: @Sendable () -> Void)?
}

/// The properties of a link that do not change.
struct LinkFacts {
    let identifier: LinkIdentifier
    /// The link's queue in the host's sender.
    let slot: SenderSlot
    /// The role of this host.
    let role: SignalingChannel.Role
    /// The peer's address when the link was made: its identity address, if a bond revealed it.
    let peer: DeviceAddress
    /// Whether the controller itself generated this host's address.
    let hasAddressOfController: Bool
}

/// One connection: the state of its channels and the calls that wait for it. Owned by the host, used on its loop.
final class Link {
    let facts: LinkFacts
    /// The peer's current address: its identity address, once a bond reveals it.
    var identity: DeviceAddress
    /// The Attribute Protocol. Its methods call no method of the host, so accesses to it never overlap.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var att: ATTRouter
    var reassembler = Reassembler()
    /// Whether the peer has been heard, as far as the host knows.
    var isEstablished: Bool
    /// Encryption, pairing and the verification of the peer's identity.
    var security: LinkSecurityEngine
    /// Whether a failed encryption of the link has had this host's private addresses replaced.
    var hasDiscardedAddress = false
    /// The credit-based channels and the signaling channel.
    var channels: ChannelEngine
    /// The Link Layer's parameters and procedures, and the end of the link.
    var control: LinkControl
    /// The session of Channel Sounding.
    var sounding: ChannelSoundingEngine

    /// The timer for the link's earliest deadline.
    var timer: DeadlineTimer?
    var observers = LinkObservers()

    /// - Parameters:
    ///   - slot: the link's queue in the host's sender.
    ///   - identity: the identity address of the peer if it is known; otherwise the address that it used.
    ///   - enhancedBearerLimit: maximum number of enhanced ATT bearers; 0 to use none.
    init(
        _ identifier: LinkIdentifier,
        _ connection: NewConnection,
        slot: SenderSlot,
        identity: DeviceAddress,
        security: LinkSecurityEngine,
        session: ServerSession,
        offeredMTU: UInt16,
        enhancedBearerLimit: Int
    ) {
        facts = LinkFacts(
            identifier: identifier,
            slot: slot,
            role: connection.role == .central ? .central : .peripheral,
            peer: identity,
            hasAddressOfController: connection.localPrivateAddress != nil
        )
        self.identity = identity
        isEstablished = connection.role == .peripheral
        self.security = security
        channels = ChannelEngine(link: identifier, role: facts.role)
        att = ATTRouter(
            offeredMTU: Int(offeredMTU),
            session: session,
            enhancedBearerLimit: enhancedBearerLimit
        )
        control = LinkControl(
            handle: connection.handle,
            role: facts.role,
            parameters: NegotiatedConnectionParameters(
                interval: connection.interval,
                latency: connection.latency,
                supervisionTimeout: connection.supervisionTimeout
            )
        )
        sounding = ChannelSoundingEngine(handle: connection.handle, isCentral: facts.role == .central)
        att.securityPublished(security.published)
    }

    /// Removes a call from those that wait for the end of the link.
    func removeEndObserver(_ call: CallToken) {
        observers.ends.removeAll { _, observer in
            if case .call(call) = observer { true } else { false }
        }
    }

    var identifier: LinkIdentifier { facts.identifier }
    var slot: SenderSlot { facts.slot }
    var handle: ConnectionHandle { identifier.handle }
    var role: SignalingChannel.Role { facts.role }
    var peer: DeviceAddress { facts.peer }
    var isGateClosed: Bool { att.isGateClosed }
    var client: BLEGATT.Client { att.client }
    var session: ServerSession { att.session }

    /// All addresses under which callers may name the peer.
    var addresses: Set<DeviceAddress> { [peer, peerAddress, identity] }

    func isWith(anyOf addresses: Set<DeviceAddress>) -> Bool {
        addresses.contains(peer) || addresses.contains(peerAddress) || addresses.contains(identity)
    }

    /// Whether the link will end soon, so that new connection attempts must not use it.
    var isEnding: Bool { control.isEnding }

    /// Whether the link counts as a connection for a caller that asked for one. A link that a peer initiated counts
    /// only if the peer is not bonded or has verified its identity.
    var countsAsConnection: Bool { role == .central || !isGateClosed }

    /// The addresses that were used on air when the link was made.
    var ownAddress: DeviceAddress { security.securityManager.ownAddress }
    var peerAddress: DeviceAddress { security.securityManager.peerAddress }

    /// The earliest deadline of the link's protocols; nil if there is none.
    var deadline: Instant? {
        earliest(
            earliest(security.deadline, control.deadline),
            earliest(earliest(att.deadline, att.enhanced?.deadline), earliest(channels.deadline, sounding.deadline))
        )
    }
}
