import BluetoothTypes
import OrderedCollections

/// The connection handles that a controller used and that belong to no link of the host.
///
/// ## Causes
/// - The link has just ended, and its last packets were still on their way to the host.
/// - The Connection Complete event is late. This happens over USB, where events and data use different pipes. The first
///   packets are kept until the event arrives (``EarlyPackets``). Otherwise the request that a client sends at once
///   would be lost, and the client would wait 30 seconds for its response. If another link with the handle ended within
///   two seconds, nothing is kept, because the packets may be the last ones of that link.
/// - The Connection Complete event was lost. The controller then has a link that the host does not know.
/// - The packet is not about a link. Controllers of one family send their log as ACL data with the handle 0x0EDC.
///   Handles above 0x0EFF are reserved (Vol 4, Part E, 5.3.1).
///
/// ## Response
/// No stray packet resets the controller, because a reset ends every other link. If data arrived for a handle that can
/// be a link's and is still unknown a second later, the host sends Disconnect for that handle. The controller's answer
/// distinguishes the cases. A controller without such a link answers Unknown Connection Identifier (0x02). The host
/// then ignores the handle until the next reset or the next link with it. A controller that has the link ends it, so
/// that the peer can connect again.
///
/// When an unknown link ends, its Connection Complete event was lost as well. That link may have ended advertising or a
/// connection attempt in the controller without the host's knowledge. The host starts both again.
///
/// The controller is reset only if it confirmed that it has such a link and then does not end it.
///
/// ## Bounds
/// The number of handles is at most ``limit``. Packets with further handles are only counted. For each handle, at most
/// four packets and 1,024 bytes are kept.
struct StrayHandles {
    private enum State {
        /// Data arrived. A late Connection Complete event is awaited until this instant.
        case observed(until: Instant, EarlyPackets)
        /// A Disconnect command was sent for the link. Its answer is pending.
        case ending
        /// The controller confirmed that it has the link. The link must end until this instant.
        case endConfirmed(until: Instant)
        /// The controller has no link with this handle. Its packets are something else, such as its own log.
        case unlinked

        var deadline: Instant? {
            switch self {
            case .observed(let deadline, _), .endConfirmed(let deadline): deadline
            case .ending, .unlinked: nil
            }
        }
    }

    /// A handle, or the restart of roles, whose time has passed.
    enum Due: Equatable {
        /// The controller is to end the link with this handle.
        case end(ConnectionHandle)
        /// The controller has not ended the link with this handle, although it has confirmed that it has it.
        case notEnded(ConnectionHandle)
        /// Connectable advertising and initiating start again, because a lost Connection Complete event may have ended
        /// them.
        case restartRoles
    }

    static let limit = 16
    /// The time that a Connection Complete event may be late, and the shortest time between two restarts of the roles.
    private static let delay = Duration.seconds(1)
    /// The longest supervision timeout, with a margin.
    private static let endTimeout = Duration.seconds(34)

    private var states: OrderedDictionary<ConnectionHandle, State> = [:]
    /// When links ended, by their handles: data that was on its way may still arrive from the controller.
    private var endedHandles = GenerationalTable<ConnectionHandle, Instant>(limit: 64)
    /// When advertising and initiating start again after the end of an unknown link.
    private var roleRestart: Instant?

    /// The number of handles that are observed or ignored.
    var count: Int { states.count }

    /// When something is due next.
    var deadline: Instant? {
        states.values.reduce(roleRestart) { earliest($0, $1.deadline) }
    }

    private mutating func hasJustEnded(_ handle: ConnectionHandle, at now: Instant) -> Bool {
        endedHandles[handle].map { now - $0 < .seconds(2) } ?? false
    }

    // MARK: Inputs

    /// Handles an ACL packet for an unknown link, which is kept while the link's Connection Complete event may be late.
    ///
    /// - Returns: whether the handle is observed from now on.
    mutating func dataArrived(_ handle: ConnectionHandle, _ packet: RawSpan, at now: Instant) -> Bool {
        if case .observed(let deadline, var packets)? = states[handle] {
            packets.append(packet)
            states[handle] = .observed(until: deadline, packets)
            return false
        }
        guard handle.isValid, states[handle] == nil, states.count < StrayHandles.limit,
            !hasJustEnded(handle, at: now)
        else { return false }
        var packets = EarlyPackets()
        packets.append(packet)
        states[handle] = .observed(until: now + StrayHandles.delay, packets)
        return true
    }

    /// Handles the end of an unknown link. Several ends within a second cause one restart of the roles.
    ///
    /// - Returns: whether this was the end of a link that the controller had not reported.
    mutating func unknownLinkEnded(_ handle: ConnectionHandle, at now: Instant) -> Bool {
        guard handle.isValid, !hasJustEnded(handle, at: now) else { return false }
        states[handle] = nil
        endedHandles[handle] = now
        if roleRestart == nil { roleRestart = now + StrayHandles.delay }
        return true
    }

    /// Forgets a handle, because a link has it now.
    ///
    /// - Returns: the link's first ACL packets, which arrived before its Connection Complete event.
    mutating func linkBegan(_ handle: ConnectionHandle) -> [[UInt8]] {
        guard case .observed(_, let packets)? = states.removeValue(forKey: handle) else { return [] }
        return packets.packets
    }

    mutating func linkEnded(_ handle: ConnectionHandle, at now: Instant) {
        endedHandles[handle] = now
    }

    /// Handles the controller's answer to the command that ends a link.
    ///
    /// - Parameter isEnding: whether the controller has the link.
    /// - Returns: whether the end of the link is awaited. The end may have arrived before, or a new link may have the
    ///   handle by now.
    mutating func endAnswered(
        _ handle: ConnectionHandle,
        isEnding: Bool,
        commandTimeout: Duration,
        at now: Instant
    ) -> Bool {
        guard case .ending? = states[handle] else { return false }
        states[handle] = isEnding ? .endConfirmed(until: now + StrayHandles.endTimeout + commandTimeout) : .unlinked
        return isEnding
    }

    /// Removes and returns one thing that is due; nil if there is none.
    mutating func takeDue(at now: Instant) -> Due? {
        let isDue: (State) -> Bool = { $0.deadline.map { $0 <= now } ?? false }
        while let index = states.values.firstIndex(where: isDue) {
            let (handle, state) = states.elements[index]
            states[handle] = nil
            if case .endConfirmed = state { return .notEnded(handle) }
            guard !hasJustEnded(handle, at: now) else { continue }
            states[handle] = .ending
            return .end(handle)
        }
        guard let roleRestart, roleRestart <= now else { return nil }
        self.roleRestart = nil
        return .restartRoles
    }

    mutating func removeAll() {
        self = StrayHandles()
    }
}

/// The first ACL packets of a link that is not known yet, in their order. If one does not fit, it and all later ones
/// are lost.
struct EarlyPackets: Equatable {
    static let limit = 4
    /// The greatest sum of the packets' lengths, in bytes.
    static let byteLimit = 1024

    private(set) var packets: [[UInt8]] = []
    private var remainingBytes = byteLimit

    mutating func append(_ packet: RawSpan) {
        guard packets.count < EarlyPackets.limit, packet.byteCount <= remainingBytes else {
            remainingBytes = 0
            return
        }
        remainingBytes -= packet.byteCount
        packets.append([UInt8](copying: packet))
    }
}

extension ConnectionHandle {
    /// Whether a link can have this handle: 0x0F00 to 0x0FFF are reserved (Vol 4, Part E, 5.3.1).
    fileprivate var isValid: Bool { rawValue <= 0x0EFF }
}
