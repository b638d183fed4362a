import ATT
import BluetoothTypes
import GATT
import HCI
import L2CAP
import OrderedCollections

/// The identifier of one link, unique during the host's life. Connection handles are reused.
public struct LinkIdentifier: Hashable, Sendable {
    /// A serial number above the twelve bits of the connection handle: later links have greater values.
    let value: UInt64

    init(handle: ConnectionHandle, serial: UInt64) {
        value = serial << 12 | UInt64(handle.rawValue)
    }

    var handle: ConnectionHandle { ConnectionHandle(UInt16(truncatingIfNeeded: value)) }
}

/// A value that a server sent in a notification or an indication.
public struct HandleValue: Hashable, Sendable {
    /// The handle of the characteristic's value.
    public let handle: AttributeHandle
    /// The stored form of ``droppedBefore``. It lies next to `handle`, where it does not increase the size of the
    /// structure.
    private var droppedCount: UInt32 = 0
    /// The value; at most ATT_MTU - 3 bytes.
    public let value: [UInt8]
    /// Whether the value was indicated. If false, it was notified.
    public let isIndication: Bool
    /// When the value arrived, on the host's clock.
    public let time: Instant

    /// The number of values that were dropped directly before this one, because the reader was too slow.
    public package(set) var droppedBefore: Int {
        get { Int(droppedCount) }
        set { droppedCount = UInt32(clamping: newValue) }
    }

    init(handle: AttributeHandle, value: [UInt8], isIndication: Bool, time: Instant) {
        self.handle = handle
        self.value = value
        self.isIndication = isIndication
        self.time = time
    }
}

/// The common parameters of the three Connection Complete events.
protocol ConnectionComplete {
    var status: HCI.ErrorCode { get }
    var connectionHandle: ConnectionHandle { get }
    var role: HCI.Role { get }
    var peerAddress: PeerAddress { get }
    var connectionInterval: UInt16 { get }
    var peripheralLatency: UInt16 { get }
    var supervisionTimeout: UInt16 { get }
}

/// The additional parameters of the two enhanced Connection Complete events.
protocol EnhancedConnectionComplete: ConnectionComplete {
    var localResolvablePrivateAddress: DeviceAddress { get }
    var peerResolvablePrivateAddress: DeviceAddress { get }
}

extension LEConnectionComplete: ConnectionComplete {}
extension LEEnhancedConnectionComplete: EnhancedConnectionComplete {}
extension LEEnhancedConnectionCompleteV2: EnhancedConnectionComplete {}

/// A connection as the controller reports it.
struct NewConnection {
    let status: HCI.ErrorCode
    let handle: ConnectionHandle
    let role: HCI.Role
    let peer: PeerAddress
    /// The private addresses that the controller used and resolved; nil if it did not.
    var localPrivateAddress: DeviceAddress?
    var peerPrivateAddress: DeviceAddress?
    let interval: UInt16
    let latency: UInt16
    let supervisionTimeout: UInt16

    /// The peer's address as the controller reports it: the identity address, if the controller has resolved it.
    var peerAddress: DeviceAddress { peer.deviceAddress ?? DeviceAddress(peer.value, isRandom: true) }

    init(_ event: some ConnectionComplete) {
        status = event.status
        handle = event.connectionHandle
        role = event.role
        peer = event.peerAddress
        interval = event.connectionInterval
        latency = event.peripheralLatency
        supervisionTimeout = event.supervisionTimeout
    }

    init(enhanced event: some EnhancedConnectionComplete) {
        self.init(event)
        localPrivateAddress = NewConnection.privateAddress(event.localResolvablePrivateAddress)
        peerPrivateAddress = NewConnection.privateAddress(event.peerResolvablePrivateAddress)
    }

    /// The event contains an address of zero if there is none.
    private static func privateAddress(_ address: DeviceAddress) -> DeviceAddress? {
        address.value == 0 ? nil : address
    }
}

/// An observer of a link's end.
enum EndObserver {
    /// A closure of an app.
    case app(@Sendable (DisconnectionReason) -> Void)
    /// A closure of the host itself, called at once.
    case host((DisconnectionReason) -> Void)
    /// A suspended call, which is resumed at once.
    case call(CallToken)
}

/// The properties of a link that do not change, and the peer's identity.
struct LinkFacts {
    /// The role of this host.
    let role: SignalingChannel.Role
    /// The peer's address when the link was made: its identity address, if a bond revealed it.
    let peer: DeviceAddress
    /// Whether the controller itself generated this host's address.
    let hasAddressOfController: Bool
    /// The peer's current address: its identity address, once a bond reveals it.
    var identity: DeviceAddress
}

/// One connection: the state of its channels and the calls that wait for it. Owned by the host, used on its loop.
final class Link {
    let identifier: LinkIdentifier
    /// The role of this host, and the addresses of the peer.
    var facts: LinkFacts
    /// The link's queue in the host's sender.
    let slot: SenderSlot
    /// The Attribute Protocol. Its methods call no method of the host, so accesses to it never overlap.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var att: ATTRouter
    var reassembler = Reassembler()
    /// Encryption, pairing and the verification of the peer's identity.
    var security: LinkSecurityEngine
    /// The question to the app, and how it is withdrawn.
    var question: (number: UInt64, withdraw: @Sendable () -> Void)?
    /// The credit-based channels and the signaling channel.
    var channels: ChannelEngine
    /// The Link Layer's parameters and procedures, and the end of the link.
    var control: LinkControl

    /// The timer for the link's earliest deadline.
    var timer: DeadlineTimer?
    /// The observers of the link's end, by the identifiers that ``BluetoothHost/observeEnd(of:_:)`` returned.
    var endObservers: OrderedDictionary<UInt64, EndObserver> = [:]

    /// - Parameters:
    ///   - slot: the link's queue in the host's sender.
    ///   - identity: the identity address of the peer if it is known; otherwise the address that it used.
    init(
        _ identifier: LinkIdentifier,
        _ connection: NewConnection,
        slot: SenderSlot,
        identity: DeviceAddress,
        security: LinkSecurityEngine,
        session: ServerSession,
        offeredMTU: UInt16
    ) {
        self.identifier = identifier
        facts = LinkFacts(
            role: connection.role == .central ? .central : .peripheral,
            peer: identity,
            hasAddressOfController: connection.localPrivateAddress != nil,
            identity: identity
        )
        self.security = security
        self.slot = slot
        channels = ChannelEngine(link: identifier, role: facts.role)
        att = ATTRouter(offeredMTU: Int(offeredMTU), session: session)
        control = LinkControl(
            handle: connection.handle,
            role: facts.role,
            parameters: NegotiatedConnectionParameters(
                interval: connection.interval,
                latency: connection.latency,
                supervisionTimeout: connection.supervisionTimeout
            )
        )
        att.securityPublished(security.published)
    }

    /// Removes a call from those that wait for the end of the link.
    func removeEndObserver(_ call: CallToken) {
        endObservers.removeAll { _, observer in
            if case .call(call) = observer { true } else { false }
        }
    }

    var handle: ConnectionHandle { identifier.handle }
    var role: SignalingChannel.Role { facts.role }
    var peer: DeviceAddress { facts.peer }
    var identity: DeviceAddress { facts.identity }
    var isUnverified: Bool { att.isUnverified }
    var client: GATT.Client { att.client }
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
    var countsAsConnection: Bool { role == .central || !isUnverified }

    /// The addresses that were used on air when the link was made.
    var ownAddress: DeviceAddress { security.securityManager.ownAddress }
    var peerAddress: DeviceAddress { security.securityManager.peerAddress }

    /// The earliest deadline of the link's protocols; nil if there is none.
    var deadline: Instant? {
        earliest(
            earliest(security.deadline, control.deadline),
            earliest(att.deadline, channels.deadline)
        )
    }
}

/// The earlier of two instants; the other one if one is nil.
func earliest(_ first: Instant?, _ second: Instant?) -> Instant? {
    guard let first, let second else { return first ?? second }
    return min(first, second)
}
