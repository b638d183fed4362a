import BLEHCI
import BluetoothTypes
import OrderedCollections

/// Identifies one reception of transferred synchronizations.
package struct SyncTransferReceptionIdentifier: Hashable, Sendable {
    let value: UInt64
}

/// How a controller receives the periodic advertising trains whose synchronizations a connected device transfers.
public struct PeriodicSyncTransferParameters: Hashable, Sendable {
    /// Maximum number of events that the controller may leave out after one that it has received: 0 to 499.
    public var skip: UInt16
    /// The time without an event after which a train counts as lost: 100 ms to 163.84 s, in steps of 10 ms.
    public var timeout: Duration

    /// The subevents to receive, 0 to 127 each; empty if the trains have none. A train without one of them is not
    /// received.
    public var subevents: [UInt8]
    /// Whether each response has the transmit power.
    public var respondsWithTXPower: Bool

    /// Creates parameters.
    public init(
        skip: UInt16 = 0,
        timeout: Duration = .seconds(10),
        subevents: [UInt8] = [],
        respondsWithTXPower: Bool = false
    ) {
        self.skip = skip
        self.timeout = timeout
        self.subevents = subevents
        self.respondsWithTXPower = respondsWithTXPower
    }

    /// Checks what the caller has chosen.
    ///
    /// - Throws: ``HostError/invalidArgument(_:)`` if a value is out of its range.
    func check() throws(HostError) {
        try PeriodicTrainRequest.check(skip: skip, timeout: timeout, subevents: subevents)
    }
}

/// The synchronization with a train that a connected device has transferred.
struct TransferredSynchronization: Equatable {
    let identifier: SynchronizationIdentifier
    let link: ConnectionHandle
    let serviceData: UInt16
    let request: PeriodicTrainRequest
    let train: PeriodicTrain
}

/// Which transferred synchronizations the apps want, and which the controller accepts.
///
/// A controller ignores transfers unless the host chooses otherwise: for one link (Vol 4, Part E, 7.8.91), or for the
/// links that begin later (7.8.92). The parameters of a link are those of the newest reception for it, otherwise those
/// of the newest reception for all links.
struct SyncTransferReception {
    /// A reception of an app.
    struct Receiver: Equatable {
        let identifier: SyncTransferReceptionIdentifier
        /// The link whose transfers are received; nil for all links.
        let link: LinkIdentifier?
        let parameters: PeriodicSyncTransferParameters
        /// Whether the app knows that the controller accepts transfers.
        fileprivate(set) var isReady = false

        init(
            identifier: SyncTransferReceptionIdentifier,
            link: LinkIdentifier?,
            parameters: PeriodicSyncTransferParameters
        ) {
            self.identifier = identifier
            self.link = link
            self.parameters = parameters
        }
    }

    /// Something that the controller is to be told. Without parameters, it ignores transfers.
    enum Setting: Equatable {
        case ofLaterLinks(PeriodicSyncTransferParameters?)
        case ofLink(ConnectionHandle, PeriodicSyncTransferParameters?)
    }

    /// What the controller does with the transfers of a link.
    private enum LinkState: Equatable {
        case told(PeriodicSyncTransferParameters?)
        /// The link began while the setting of later links was being changed.
        case unknown
    }

    /// Maximum number of receptions.
    static let limit = 64

    private(set) var receivers: [Receiver] = []
    private var toldForLaterLinks: PeriodicSyncTransferParameters?
    /// The links, while ``isInUse``.
    private var links: OrderedDictionary<ConnectionHandle, LinkState> = [:]
    /// The setting that the controller is being told.
    private var current: Setting?

    /// Whether an app wants transfers, or the controller still accepts some.
    var isInUse: Bool {
        !receivers.isEmpty || toldForLaterLinks != nil || current != nil
            || links.values.contains { $0 != .told(nil) }
    }

    private func wanted(for link: ConnectionHandle?) -> Receiver? {
        let own = link.flatMap { link in receivers.last { $0.link?.handle == link } }
        return own ?? receivers.last { $0.link == nil }
    }

    /// Whether a reception is for trains with subevents.
    var wantsSubevents: Bool { receivers.contains { !$0.parameters.subevents.isEmpty } }

    /// The reception that gets the transfers of a link.
    func receiver(for link: ConnectionHandle) -> Receiver? { wanted(for: link) }

    // MARK: Receptions

    /// Adds a reception.
    ///
    /// - Parameter existing: the links of the host.
    /// - Throws: ``HostError/limitReached(_:)`` if there are too many.
    mutating func start(_ receiver: Receiver, existing: some Sequence<ConnectionHandle>) throws(HostError) {
        guard receivers.count < Self.limit else {
            throw .limitReached(
                "there are \(Self.limit) receptions of transferred trains, the maximum; stop another one first"
            )
        }
        if !isInUse { links = [:] }
        receivers.append(receiver)
        for link in existing where links[link] == nil { links[link] = .told(nil) }
    }

    /// Ends a reception. Does nothing if it has ended.
    mutating func stop(_ identifier: SyncTransferReceptionIdentifier) {
        receivers.removeAll { $0.identifier == identifier }
    }

    /// Ends all receptions.
    ///
    /// - Returns: the ended ones, oldest first.
    mutating func removeAll() -> [SyncTransferReceptionIdentifier] {
        defer { receivers = [] }
        return receivers.map(\.identifier)
    }

    /// Ends the receptions of trains with subevents.
    ///
    /// - Returns: the ended ones, oldest first.
    mutating func removeAllWithSubevents() -> [SyncTransferReceptionIdentifier] {
        defer { receivers.removeAll { !$0.parameters.subevents.isEmpty } }
        return receivers.filter { !$0.parameters.subevents.isEmpty }.map(\.identifier)
    }

    /// Marks the receptions as ready whose transfers the controller accepts now.
    ///
    /// - Returns: those that were not ready before.
    mutating func takeReady() -> [SyncTransferReceptionIdentifier] {
        guard current == nil, nextSetting == nil else { return [] }
        var ready: [SyncTransferReceptionIdentifier] = []
        for index in receivers.indices where !receivers[index].isReady {
            receivers[index].isReady = true
            ready.append(receivers[index].identifier)
        }
        return ready
    }

    // MARK: Links

    /// Records a new link, which has the controller's setting of later links.
    ///
    /// - Returns: whether the controller may have to be told something.
    mutating func linkBegan(_ link: ConnectionHandle) -> Bool {
        guard isInUse else { return false }
        if case .ofLaterLinks = current { links[link] = .unknown } else { links[link] = .told(toldForLaterLinks) }
        return true
    }

    /// Records the end of a link.
    ///
    /// - Returns: the receptions of that link, which have ended.
    mutating func linkEnded(_ link: LinkIdentifier) -> [SyncTransferReceptionIdentifier] {
        links[link.handle] = nil
        let ended = receivers.filter { $0.link == link }.map(\.identifier)
        if !ended.isEmpty { receivers.removeAll { $0.link == link } }
        return ended
    }

    /// Records that the controller was reset and ignores all transfers. Its links have ended, or end now.
    mutating func controllerLost() {
        toldForLaterLinks = nil
        current = nil
        links = [:]
        for index in receivers.indices { receivers[index].isReady = false }
    }

    // MARK: The controller

    /// The next thing to tell the controller; nil if it knows all.
    var nextSetting: Setting? {
        guard isInUse else { return nil }
        let wantedForLaterLinks = wanted(for: nil)?.parameters
        if wantedForLaterLinks != toldForLaterLinks { return .ofLaterLinks(wantedForLaterLinks) }
        for (link, state) in links {
            let wanted = wanted(for: link)?.parameters
            if state != .told(wanted) { return .ofLink(link, wanted) }
        }
        return nil
    }

    mutating func begin(_ setting: Setting) { current = setting }

    /// Records that the controller has taken the setting.
    mutating func finished(_ setting: Setting) {
        current = nil
        record(setting)
    }

    /// Records that the controller has refused a setting. It is not told it again.
    ///
    /// - Returns: the receptions that end because of it.
    mutating func refused(_ setting: Setting) -> [SyncTransferReceptionIdentifier] {
        finished(setting)
        let link: ConnectionHandle? = if case .ofLink(let link, _) = setting { link } else { nil }
        let ended = receivers.filter { $0.link?.handle == link }.map(\.identifier)
        receivers.removeAll { ended.contains($0.identifier) }
        return ended
    }

    private mutating func record(_ setting: Setting) {
        switch setting {
        case .ofLaterLinks(let parameters): toldForLaterLinks = parameters
        case .ofLink(let link, let parameters): if links[link] != nil { links[link] = .told(parameters) }
        }
    }
}
