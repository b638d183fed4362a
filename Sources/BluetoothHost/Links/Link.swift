import ATT
import BluetoothTypes
import GATT
import HCI
import L2CAP
import OrderedCollections

/// Names one link for as long as the host lives; a connection handle is used again.
public struct LinkIdentifier: Hashable, Sendable {
    /// A serial number over the twelve bits of the connection handle: later links have greater values.
    let value: UInt64

    init(handle: ConnectionHandle, serial: UInt64) {
        value = serial << 12 | UInt64(handle.rawValue)
    }

    var handle: ConnectionHandle { ConnectionHandle(UInt16(truncatingIfNeeded: value)) }
}

/// A value that a server has sent without being asked.
public struct HandleValue: Hashable, Sendable {
    public let handle: AttributeHandle
    /// The count of ``droppedBefore``. It is beside `handle` so that a value is not longer because of it.
    private var droppedCount: UInt32 = 0
    public let value: [UInt8]
    public let isIndication: Bool
    /// When it came, on the host's clock.
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

/// What the three Connection Complete events have in common.
protocol ConnectionComplete {
    var status: HCI.ErrorCode { get }
    var connectionHandle: ConnectionHandle { get }
    var role: HCI.Role { get }
    var peerAddress: PeerAddress { get }
    var connectionInterval: UInt16 { get }
    var peripheralLatency: UInt16 { get }
    var supervisionTimeout: UInt16 { get }
}

/// What the two enhanced Connection Complete events have beside that.
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
    /// The private addresses that the controller used and resolved, where it did.
    var localPrivateAddress: DeviceAddress?
    var peerPrivateAddress: DeviceAddress?
    let interval: UInt16
    let latency: UInt16
    let supervisionTimeout: UInt16

    /// The peer as the controller tells of it: its identity, where the controller has resolved that.
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

    /// An address of zero stands for none.
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

/// One connection: the state of its channels, and who waits for what on it. Owned by the host, used on its loop.
final class Link {
    let identifier: LinkIdentifier
    let handle: ConnectionHandle
    let role: SignalingChannel.Role
    /// Whom the peer was known as when the link was made.
    let peer: DeviceAddress
    /// Whether the controller itself made the own address.
    let hasAddressOfController: Bool
    /// Whom the peer is known as: its identity address, where a bond tells that.
    var identity: DeviceAddress
    /// The link's frames in the host's sender.
    let slot: SenderSlot
    /// The Attribute Protocol. Its methods call nothing of the host's, so accesses of it do not overlap and the runtime need
    /// not check.
    @exclusivity(unchecked)
    var att: ATTRouter
    var signaling: SignalingChannel
    var reassembler = Reassembler()
    var protection: Protection {
        didSet { awaitsProof = protection.awaitsProof }
    }
    /// What ``Protection/awaitsProof`` says, kept for the calls that ask each time.
    private(set) var awaitsProof: Bool
    var channels = CreditBasedChannels()
    /// Who has the channels, by our ends of them.
    var channelUses: [ChannelIdentifier: ChannelUse] = [:]
    /// Whether the channels may have more to send than there was room for.
    @exclusivity(unchecked)
    var channelsAwaitRoom = false

    var parameters: NegotiatedConnectionParameters
    var transmitPHY = PHY.le1M
    var receivePHY = PHY.le1M
    var maximumTransmitOctets: UInt16 = 27
    var maximumReceiveOctets: UInt16 = 27
    var remoteFeatures: LEFeatures?

    /// The timer for the earliest deadline of bearer, signalling and channels, and when it goes off.
    var timer: TimerQueue.Token?
    @exclusivity(unchecked)
    var timerDue: Instant?
    var isDisconnecting = false
    /// Whether the link will be ended once all that was written on it has been sent.
    var isReleased = false
    /// The number of holds: successful calls of ``BluetoothHost/connect(toAnyOf:parameters:timeout:)`` and
    /// ``BluetoothHost/hold(_:)`` that were not followed by a release.
    var holdCount = 0
    /// Goes off when the controller has not ended the link in time.
    var disconnectionTimer: TimerQueue.Token?
    /// Why the host itself ends the link, where the controller's reason would not say.
    var ownReason: DisconnectionReason?
    /// The observers of the link's end, by the identifiers that ``BluetoothHost/observeEnd(of:_:)`` returned.
    var endObservers: OrderedDictionary<UInt64, EndObserver> = [:]
    /// PDUs that were dropped because the peer does not take the answers to those before.
    var floodingCount = 0
    var connectionUpdates = ProcedureQueue<LinkRequest>()
    var phyUpdates = ProcedureQueue<LinkRequest>()

    /// - Parameters:
    ///   - slot: the link's frames in the host's sender.
    ///   - identity: whom the peer's address belongs to.
    init(
        _ identifier: LinkIdentifier,
        _ connection: NewConnection,
        slot: SenderSlot,
        identity: DeviceAddress,
        protection: Protection,
        session: ServerSession,
        offeredMTU: UInt16
    ) {
        self.identifier = identifier
        handle = connection.handle
        role = connection.role == .central ? .central : .peripheral
        peer = identity
        hasAddressOfController = connection.localPrivateAddress != nil
        self.identity = identity
        self.protection = protection
        awaitsProof = protection.awaitsProof
        self.slot = slot
        signaling = SignalingChannel(role: role)
        att = ATTRouter(offeredMTU: Int(offeredMTU), session: session)
        parameters = NegotiatedConnectionParameters(
            interval: connection.interval,
            latency: connection.latency,
            supervisionTimeout: connection.supervisionTimeout
        )
    }

    /// Removes a call from those that wait for the end of the link.
    func removeEndObserver(_ call: CallToken) {
        endObservers.removeAll { _, observer in
            if case .call(call) = observer { true } else { false }
        }
    }

    var client: GATT.Client { att.client }
    var session: ServerSession { att.session }

    /// All addresses by which the peer may be called.
    var addresses: Set<DeviceAddress> { [peer, peerAddress, identity] }

    func isWith(anyOf addresses: Set<DeviceAddress>) -> Bool {
        addresses.contains(peer) || addresses.contains(peerAddress) || addresses.contains(identity)
    }

    /// Whether the link ends soon, so that it serves no new connection.
    var isEnding: Bool { isDisconnecting || isReleased }

    /// Whether the link is a connection to its peer for a caller that asked for one. A link that a peer has made counts
    /// only if it does not merely claim a bonded device's address.
    var countsAsConnection: Bool { role == .central || !protection.awaitsProof }

    /// Whether an app has chosen the peer that it wants to pair with. A Security Request goes to whichever central has
    /// connected, which may be an attacker that connects again and again.
    func isChosenByApp(_ initiative: Protection.Initiative) -> Bool { initiative == .app && role == .central }

    /// The addresses that the link was made with, as they were sent.
    var ownAddress: DeviceAddress { protection.channel.ownAddress }
    var peerAddress: DeviceAddress { protection.channel.peerAddress }

    /// When the link wants to be looked at, if at all.
    var deadline: Instant? {
        earliest(
            earliest(protection.deadline, channels.deadline),
            earliest(att.deadline, signaling.deadline)
        )
    }
}

/// The earlier of two instants; if there is only one, that one.
func earliest(_ first: Instant?, _ second: Instant?) -> Instant? {
    guard let first, let second else { return first ?? second }
    return min(first, second)
}
