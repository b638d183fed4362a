import BLEHCI
import BluetoothTypes
import OrderedCollections

/// The broadcast isochronous groups of a host, and their streams (Vol 6, Part B, 4.4.6).
struct BroadcastGroups {
    /// A group that this host sends or receives.
    struct Group {
        enum Role: Equatable {
            /// The advertisement whose periodic train announces the group.
            case broadcaster(AdvertisementIdentifier, BroadcastGroupParameters)
            /// The synchronization with the train that announces the group.
            case receiver(SynchronizationIdentifier, BroadcastReceptionParameters)
        }

        enum Phase: Equatable {
            /// The end of an earlier group of the same advertisement is awaited.
            case awaitingEnd
            /// A receiver waits for the train to announce the group.
            case awaitingInformation
            /// The event for the command that creates the group is awaited.
            case creating
            /// The answers to this number of commands for data paths are awaited.
            case settingUpPaths(Int)
            case open
            /// The end of the group is awaited.
            case closing
        }

        /// Names the group in the effects, until it is open.
        let number: UInt64
        let role: Role
        var phase: Phase
        /// The advertising set whose train announces a group that is sent.
        var advertisingHandle: UInt8 = 0
        /// The handles of the streams that the controller has.
        var handles: [ConnectionHandle] = []
        /// The numbers of the streams, in the order of their handles.
        var streamNumbers: [UInt8] = []
        /// What the train has announced, for a receiver.
        var information: BroadcastGroupInformation?
        /// Why the group fails when it has ended.
        var failure: HostError?
        /// Whether the caller has given the group up before it was open.
        var isCancelled = false
        /// Whether the streams were reported as opened.
        var isReported = false
        /// Whether the controller has created the group that this host sends.
        var isCreated = false
        /// Whether the controller has refused to end the group while it was being created.
        var endRefused = false
        /// When another reception may be created first, because the train of this one no longer announces the group.
        var creationDeadline: Instant?
        /// Whether the reception begins again when its creation has ended: another one is created first.
        var isYielding = false

        /// Whether the group is ending, or ends as soon as it exists.
        var isEnding: Bool { phase == .closing || isCancelled || failure != nil }

        var advertisement: AdvertisementIdentifier? {
            if case .broadcaster(let advertisement, _) = role { advertisement } else { nil }
        }

        var synchronization: SynchronizationIdentifier? {
            if case .receiver(let synchronization, _) = role { synchronization } else { nil }
        }

        /// Whether the controller creates or ends the reception of the group.
        var isReceptionChanging: Bool { synchronization != nil && (phase == .creating || phase == .closing) }

        /// Whether the creation of the reception has taken so long that another one comes first.
        func mustYield(at now: Instant) -> Bool {
            guard let creationDeadline, phase == .creating else { return false }
            return creationDeadline <= now
        }

        /// Records that the controller creates the reception of these streams.
        mutating func beginReception(of information: BroadcastGroupInformation, streams: [UInt8], at now: Instant) {
            self.information = information
            streamNumbers = streams
            phase = .creating
            creationDeadline = now + IsochronousEngine.creationTimeout
        }
    }

    struct Stream {
        let bigHandle: UInt8
        let information: IsochronousStreamInformation
        /// Whether the caller has closed the stream. The group ends when all its streams are closed.
        var isClosed = false
        var assembler = SDUAssembler()
    }

    /// Maximum number of groups.
    static let limit = 16

    /// The groups by BIG_Handle.
    var groups: OrderedDictionary<UInt8, Group> = [:]
    var streams: OrderedDictionary<ConnectionHandle, Stream> = [:]
    /// The handle of the group that has ended last.
    private var lastEnded: UInt8?

    /// Adds a group, with the lowest handle that is free, because some controllers accept only low ones.
    ///
    /// The handle of the group that has ended last is not used: the controller may still report an event with it.
    mutating func add(_ group: Group) throws(HostError) -> UInt8 {
        let free = (0..<UInt8(BroadcastGroups.limit + 1)).first { groups[$0] == nil && $0 != lastEnded }
        guard groups.count < BroadcastGroups.limit, let free else {
            throw .limitReached("there are \(Self.limit) broadcast groups, the maximum; stop another one first")
        }
        groups[free] = group
        return free
    }

    /// Removes a group.
    mutating func remove(_ big: UInt8) -> Group? {
        guard let group = groups.removeValue(forKey: big) else { return nil }
        lastEnded = big
        return group
    }

    /// Returns a reception to the waiting state, under another handle and after the others.
    mutating func waitAgain(_ big: UInt8) {
        guard var group = remove(big) else { return }
        group.phase = .awaitingInformation
        group.isYielding = false
        group.creationDeadline = nil
        _ = try? add(group)
    }

    /// The stream with an identifier that is open.
    func handle(of identifier: IsochronousStreamIdentifier) -> ConnectionHandle? {
        streams.first {
            $0.value.information.identifier == identifier && !$0.value.isClosed
                && groups[$0.value.bigHandle]?.phase == .open
        }?.key
    }
}
