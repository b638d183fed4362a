import BluetoothHost
import BluetoothTypes
import DequeModule
import Foundation
import Synchronization

/// The events of peers that wait for the app's queue.
///
/// ## Overview
///
/// A manager calls its delegate on a queue of the app, which may be blocked for any time. During that time the host
/// continues to receive from peers. So each kind of event that a peer can cause again and again has limits.
///
/// No limit is per link. A peer has the same identifier on each of its links, so it gains nothing by connecting again.
///
/// - Per peer: the values, changes and connections of a peripheral.
/// - Per peer and in total: the commands, changes, channels and connections of a central. The total is needed because a
///   central may connect under many addresses. The app decides how many peripherals it connects to.
/// - In total: discoveries and connection events.
///
/// An event beyond a limit is not delivered. The backend then acts by the kind of event. A command, a value or a
/// discovery is dropped and counted. A connection event is dropped. A channel is closed. A peer that causes other
/// events is disconnected. When there is room for discoveries again, peripherals whose discovery was dropped are
/// discovered when they are heard next.
///
/// The app can request a connection again and again too, also for a peripheral whose connection waits to be reported.
/// The answer to each request replaces that to the previous one. So the last request is always answered, and the
/// requests do not count against the limit.
///
/// ## Threading
///
/// The host's loop adds events, and the manager's queue removes them.
final class DeliveryBacklog<Event: BackendEvent>: Sendable {
    typealias Source = Event.Source

    /// The outcome of an event that is added.
    enum Addition {
        /// The event is the last one.
        case appended
        /// The event has the place of an earlier one, which is not delivered.
        case replacedEarlier
        /// The event exceeds a limit, and is not delivered.
        case refused
    }

    private struct State {
        /// The events, the oldest first.
        var events = Deque<Event>()
        /// The waiting amount of each source.
        var amounts: [Source: Int] = [:]
        /// The sources that have reached their limit, until half of it is free.
        var refused: Set<Source> = []

        /// - Returns: the remaining amount.
        mutating func subtract(_ amount: Int, from source: Source) -> Int {
            let rest = amounts[source, default: 0] - amount
            amounts[source] = rest > 0 ? rest : nil
            return rest
        }
    }

    private let state = Mutex(State())

    /// Adds an event, unless it exceeds a limit.
    func add(_ event: Event) -> Addition {
        state.withLock { state in
            guard let load = event.load else {
                state.events.append(event)
                return .appended
            }
            let amount = state.amounts[load.source, default: 0]
            if amount > 0, let index = event.indexOfReplaced(in: state.events) {
                state.events[index] = event
                return .replacedEarlier
            }
            guard amount < load.limit else {
                state.refused.insert(load.source)
                return .refused
            }
            if let total = load.total {
                let sum = state.amounts[total.source, default: 0]
                guard sum < total.limit else { return .refused }
                state.amounts[total.source] = sum + load.amount
            }
            state.amounts[load.source] = amount + load.amount
            state.events.append(event)
            return .appended
        }
    }

    /// Removes the oldest event, because the delegate is called with it now; nil if no event waits.
    ///
    /// - Returns: the event. `hasRoom` is true once half of the limit of its source is free, if events of that source
    ///   were refused before.
    func removeFirst() -> (event: Event, hasRoom: Bool)? {
        state.withLock { state in
            guard let event = state.events.popFirst() else { return nil }
            guard let load = event.load else { return (event, false) }
            let amount = state.subtract(load.amount, from: load.source)
            if let total = load.total { _ = state.subtract(load.amount, from: total.source) }
            guard !state.refused.isEmpty, amount <= load.limit / 2 else { return (event, false) }
            return (event, state.refused.remove(load.source) != nil)
        }
    }

    /// Whether no event waits.
    var isEmpty: Bool { state.withLock { $0.events.isEmpty } }
}

/// The amount by which a waiting event counts against the limits.
struct DeliveryLoad<Source: Hashable & Sendable> {
    let source: Source
    var amount = 1
    /// No event is added once the amounts of a source have reached the limit.
    let limit: Int
    /// The source and the limit for all peers together, against which the event also counts; nil for none.
    var total: (source: Source, limit: Int)?
}

extension CentralEvent {
    /// The kinds of events that peers can cause again and again. A UUID identifies a peripheral.
    enum Source: Hashable, Sendable {
        case values(UUID)
        case changes(UUID)
        case connections(UUID)
        case advertisements
        case connectionEvents
    }

    /// The limit of one peripheral's waiting values: 16 MiB. A value counts as its length plus 256 bytes.
    static let valueLimit = 16 << 20
    static let valueOverhead = 256
    /// Maximum number of waiting changes of one peripheral's MTU, name and services.
    static let changeLimit = 256
    /// Maximum number of waiting connections to one peripheral. With automatic reconnection, a peripheral can cause any
    /// number of them.
    static let connectionLimit = 64
    /// Maximum number of waiting discoveries of all peripherals.
    static let advertisementLimit = 4096
    /// Maximum number of waiting connection events of all peripherals.
    static let connectionEventLimit = 1024

    /// The amount by which the event counts; nil if peers cannot cause it without the app, or if another event limits
    /// it.
    var load: DeliveryLoad<Source>? {
        switch self {
        case .valueReceived(let peripheral, _, let value):
            DeliveryLoad(
                source: .values(peripheral),
                amount: value.count + CentralEvent.valueOverhead,
                limit: CentralEvent.valueLimit
            )
        case .mtuChanged(let peripheral, _), .nameChanged(let peripheral, _), .servicesChanged(let peripheral, _, _):
            DeliveryLoad(source: .changes(peripheral), limit: CentralEvent.changeLimit)
        case .connected(let connection, _, _):
            DeliveryLoad(source: .connections(connection.peripheral), limit: CentralEvent.connectionLimit)
        case .discovered: DeliveryLoad(source: .advertisements, limit: CentralEvent.advertisementLimit)
        case .connectionEvent: DeliveryLoad(source: .connectionEvents, limit: CentralEvent.connectionEventLimit)
        // A disconnection follows a connection, or answers the app.
        case .restored, .stateChanged, .connectionFailed, .disconnected: nil
        }
    }

    /// Returns the index of the waiting event that reports the same link for an earlier request of the app. The manager
    /// ignores events of earlier requests.
    func indexOfReplaced(in waiting: Deque<CentralEvent>) -> Int? {
        guard case .connected(let connection, _, let link) = self else { return nil }
        return waiting.lastIndex { event in
            guard case .connected(let earlier, _, link) = event else { return false }
            return earlier.peripheral == connection.peripheral && earlier != connection
        }
    }
}

extension PeripheralEvent {
    /// The kinds of events that peers can cause again and again. A UUID identifies a central.
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

    /// The limit of one central's waiting commands: 256 KiB. A command counts as the length of its value plus 256
    /// bytes. At the highest rate of a link this is about half a second, for which an app's main queue may well be
    /// busy.
    static let commandLimit = 256 << 10
    static let commandOverhead = 256
    /// The limit of all centrals' waiting commands: 4 MiB.
    static let totalCommandLimit = 4 << 20
    /// Maximum number of waiting changes of one central's MTU and identity.
    static let changeLimit = 256
    /// Maximum number of waiting changes of one central's subscription to one value. A bond restores any number of
    /// subscriptions at once, but each of them once.
    static let subscriptionLimit = 32
    /// Maximum number of waiting changes of all centrals.
    static let totalChangeLimit = 16384
    /// Maximum number of waiting channels of one central.
    static let channelLimit = 64
    /// Maximum number of waiting channels of all centrals. Each holds at most 16 KiB that the app has not read, in
    /// addition to the bytes in the host.
    static let totalChannelLimit = 256
    /// Maximum number of waiting connections of one central.
    static let connectionLimit = 64
    /// Maximum number of waiting connections of all centrals.
    static let totalConnectionLimit = 1024

    /// The amount by which the event counts; nil if another event or the protocol limits it.
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
