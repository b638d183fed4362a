import BluetoothHost
import BluetoothTypes
import Foundation
import Synchronization

/// The events of peers that wait for the app's queue.
///
/// ## Overview
///
/// A manager calls its delegate on a queue of the app, which may be blocked for any time. During that time the host
/// takes what peers send. So each kind of event that a peer can cause again and again has limits.
///
/// No limit is per link. A peer has the same identifier on each of its links, so it gains nothing by connecting again.
///
/// - Per peer: the values, changes and connections of a peripheral.
/// - Per peer and in total: the commands, changes, channels and connections of a central. The total is needed because a
///   central may connect under many addresses. The app decides how many peripherals it connects to.
/// - In total: discoveries and connection events.
///
/// An event beyond a limit is not delivered. The engine then acts by the kind of event. A command, a value or a
/// discovery is dropped and counted. A connection event is dropped. A channel is closed. A peer that causes other
/// events is disconnected. When there is room for discoveries again, peripherals whose discovery was dropped are
/// discovered when they are heard next.
///
/// ## Threading
///
/// The host's loop adds, the manager's queue removes.
final class DeliveryBacklog<Source: Hashable & Sendable>: Sendable {
    private struct State {
        /// The amounts that wait, by what they count for.
        var amounts: [Source: Int] = [:]
        /// The sources that have reached their limit, until half of it is free.
        var refused: Set<Source> = []

        /// - Returns: the amount that is left.
        mutating func subtract(_ amount: Int, from source: Source) -> Int {
            let rest = amounts[source, default: 0] - amount
            amounts[source] = rest > 0 ? rest : nil
            return rest
        }
    }

    private let state = Mutex(State())

    /// Adds an event, unless one of its limits is reached.
    ///
    /// - Returns: whether the event was added.
    func add(_ load: DeliveryLoad<Source>) -> Bool {
        state.withLock { state in
            let amount = state.amounts[load.source, default: 0]
            guard amount < load.limit else {
                state.refused.insert(load.source)
                return false
            }
            if let total = load.total {
                let sum = state.amounts[total.source, default: 0]
                guard sum < total.limit else { return false }
                state.amounts[total.source] = sum + load.amount
            }
            state.amounts[load.source] = amount + load.amount
            return true
        }
    }

    /// Removes an event that was added, because the delegate is called with it now.
    ///
    /// - Returns: true once half of the limit of the event's source is free, if events of it were refused before.
    @discardableResult
    func remove(_ load: DeliveryLoad<Source>) -> Bool {
        state.withLock { state in
            let amount = state.subtract(load.amount, from: load.source)
            if let total = load.total { _ = state.subtract(load.amount, from: total.source) }
            guard !state.refused.isEmpty, amount <= load.limit / 2 else { return false }
            return state.refused.remove(load.source) != nil
        }
    }

    /// Whether no event waits.
    var isEmpty: Bool { state.withLock { $0.amounts.isEmpty } }
}

/// What an event counts for, while it waits for the app's queue.
struct DeliveryLoad<Source: Hashable & Sendable> {
    let source: Source
    var amount = 1
    /// No event is added once the amounts of a source have reached the limit.
    let limit: Int
    /// The same for all peers together: what the event counts for there, and the limit of that.
    var total: (source: Source, limit: Int)?
}

extension CentralEvent {
    /// What peers can cause again and again.
    enum Source: Hashable, Sendable {
        case values(UUID)
        case changes(UUID)
        case connections(UUID)
        case advertisements
        case connectionEvents
    }

    /// The values of one peripheral that wait: 16 MiB. A value counts as 256 bytes more than it is long.
    static let valueLimit = 16 << 20
    static let valueOverhead = 256
    /// Changes of one peripheral's MTU, name and services that wait.
    static let changeLimit = 256
    /// Connections to one peripheral that wait. With automatic reconnection, a peripheral can cause any number of them.
    static let connectionLimit = 64
    /// Discoveries of all peripherals that wait.
    static let advertisementLimit = 4096
    /// Connection events of all peripherals that wait.
    static let connectionEventLimit = 1024

    /// What the event counts for; nil if peers cannot cause it without the app, or if another event limits it.
    var load: DeliveryLoad<Source>? {
        switch self {
        case .valueReceived(let peripheral, _, let value):
            DeliveryLoad(
                source: .values(peripheral),
                amount: value.count + CentralEvent.valueOverhead,
                limit: CentralEvent.valueLimit
            )
        case .mtuChanged(let peripheral, _), .nameChanged(let peripheral, _), .servicesChanged(let peripheral, _):
            DeliveryLoad(source: .changes(peripheral), limit: CentralEvent.changeLimit)
        case .connected(let peripheral, _):
            DeliveryLoad(source: .connections(peripheral), limit: CentralEvent.connectionLimit)
        case .discovered: DeliveryLoad(source: .advertisements, limit: CentralEvent.advertisementLimit)
        case .connectionEvent: DeliveryLoad(source: .connectionEvents, limit: CentralEvent.connectionEventLimit)
        // A disconnection follows a connection, or answers the app.
        case .restored, .stateChanged, .connectionFailed, .disconnected: nil
        }
    }
}

extension PeripheralEvent {
    /// What peers can cause again and again. Centrals are named by their identifiers.
    enum Source: Hashable, Sendable {
        case commands(UUID)
        case changes(UUID)
        case subscription(UUID, AttributeHandle)
        case channels(UUID)
        case connections(UUID)
        case allCommands
        case allChanges
        case allChannels
        case allConnections
    }

    /// The commands of one central that wait: 256 KiB. A command counts as 256 bytes more than its value is long. At
    /// the highest rate of a link this is about half a second, for which an app's main queue may well be busy.
    static let commandLimit = 256 << 10
    static let commandOverhead = 256
    /// The commands of all centrals that wait: 4 MiB.
    static let totalCommandLimit = 4 << 20
    /// Changes of one central's MTU and identity that wait.
    static let changeLimit = 256
    /// Changes of one central's subscription to one value that wait. A bond restores any number of subscriptions at
    /// once, but each of them once.
    static let subscriptionLimit = 32
    /// Changes of all centrals that wait.
    static let totalChangeLimit = 16384
    /// Channels of one central that wait.
    static let channelLimit = 64
    /// Channels of all centrals that wait. Each holds at most 16 KiB that the app has not read, beside what the host
    /// holds.
    static let totalChannelLimit = 256
    /// Connections of one central that wait.
    static let connectionLimit = 64
    /// Connections of all centrals that wait.
    static let totalConnectionLimit = 1024

    /// What the event counts for; nil if another event or the protocol limits it.
    var load: DeliveryLoad<Source>? {
        switch self {
        case .access(let central, let request):
            // A client has at most one open request on a link (Vol 3, Part F, 3.3.2).
            request.commandLength.map { length in
                DeliveryLoad(
                    source: .commands(central.identifier),
                    amount: length + PeripheralEvent.commandOverhead,
                    limit: PeripheralEvent.commandLimit,
                    total: (.allCommands, PeripheralEvent.totalCommandLimit)
                )
            }
        case .configured(let central, let handle, _):
            DeliveryLoad(
                source: .subscription(central.identifier, handle),
                limit: PeripheralEvent.subscriptionLimit,
                total: (.allChanges, PeripheralEvent.totalChangeLimit)
            )
        case .mtuChanged(let central), .identified(let central, _):
            DeliveryLoad(
                source: .changes(central.identifier),
                limit: PeripheralEvent.changeLimit,
                total: (.allChanges, PeripheralEvent.totalChangeLimit)
            )
        case .channelOpened(let central, _, _):
            DeliveryLoad(
                source: .channels(central.identifier),
                limit: PeripheralEvent.channelLimit,
                total: (.allChannels, PeripheralEvent.totalChannelLimit)
            )
        case .connected(let central):
            DeliveryLoad(
                source: .connections(central.identifier),
                limit: PeripheralEvent.connectionLimit,
                total: (.allConnections, PeripheralEvent.totalConnectionLimit)
            )
        case .restored, .stateChanged, .disconnected: nil
        }
    }
}
