import BluetoothHost
import Foundation

/// The events of peers that wait for the app's queue.
///
/// ## Overview
///
/// A manager calls its delegate on a queue of the app, which may be blocked for any time. During that time the host takes what
/// peers send. So each kind of event that a peer can cause again and again has a limit, for each peer.
///
/// An event beyond the limit is not delivered. The engine then acts by the kind of event. A command, a value or a discovery is
/// dropped and counted. A connection event is dropped. A peer that causes other events is disconnected.
///
/// ## Threading
///
/// The host's loop adds, the manager's queue removes.
final class DeliveryBacklog<Source: Hashable & Sendable>: Sendable {
    private let amounts = Guarded<[Source: Int]>([:])

    /// Adds an event, unless its limit is reached.
    ///
    /// - Returns: whether the event was added.
    func add(_ load: DeliveryLoad<Source>) -> Bool {
        amounts.withLock { amounts in
            let amount = amounts[load.source, default: 0]
            guard amount < load.limit else { return false }
            amounts[load.source] = amount + load.amount
            return true
        }
    }

    /// Removes an event that was added, because the delegate is called with it now.
    func remove(_ load: DeliveryLoad<Source>) {
        amounts.withLock { amounts in
            let amount = amounts[load.source, default: 0] - load.amount
            amounts[load.source] = amount > 0 ? amount : nil
        }
    }

    /// Whether no event waits.
    var isEmpty: Bool { amounts.withLock { $0.isEmpty } }
}

/// What an event counts for, while it waits for the app's queue.
struct DeliveryLoad<Source: Hashable & Sendable> {
    let source: Source
    var amount = 1
    /// No event is added once the amounts of a source have reached the limit.
    let limit: Int
}

extension CentralEvent {
    /// What peers can cause again and again.
    enum Source: Hashable, Sendable {
        case values(UUID)
        case changes(UUID)
        case advertisements
        case connectionEvents
    }

    /// The values of one peripheral that wait: 16 MiB. A value counts as 256 bytes more than it is long.
    static let valueLimit = 16 << 20
    static let valueOverhead = 256
    /// Changes of one peripheral's MTU, name and services that wait.
    static let changeLimit = 256
    /// Discoveries of all peripherals that wait.
    static let advertisementLimit = 4096
    /// Connection events of all peripherals that wait.
    static let connectionEventLimit = 1024

    /// What the event counts for; nil if peers cannot cause it without the app.
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
        case .discovered: DeliveryLoad(source: .advertisements, limit: CentralEvent.advertisementLimit)
        case .connectionEvent: DeliveryLoad(source: .connectionEvents, limit: CentralEvent.connectionEventLimit)
        case .restored, .stateChanged, .connected, .connectionFailed, .disconnected: nil
        }
    }
}

extension PeripheralEvent {
    /// What peers can cause again and again.
    enum Source: Hashable, Sendable {
        case commands(LinkIdentifier)
        case changes(LinkIdentifier)
        case channels(LinkIdentifier)
        case connections
    }

    /// The commands of one link that wait: 256 KiB. A command counts as 256 bytes more than its value is long. At the highest
    /// rate of a link this is more than half a second, for which an app's main queue may well be busy.
    static let commandLimit = 256 << 10
    static let commandOverhead = 256
    /// Changes of one link's MTU, identity and subscriptions that wait.
    static let changeLimit = 256
    /// Channels of one link that wait.
    static let channelLimit = 64
    /// Connections of all centrals that wait.
    static let connectionLimit = 1024

    /// What the event counts for; nil if another event or the protocol limits it.
    var load: DeliveryLoad<Source>? {
        switch self {
        case .access(let central, let request):
            // A client has at most one open request (Vol 3, Part F, 3.3.2).
            request.commandLength.map { length in
                DeliveryLoad(
                    source: .commands(central.link),
                    amount: length + PeripheralEvent.commandOverhead,
                    limit: PeripheralEvent.commandLimit
                )
            }
        case .configured(let central, _, _), .mtuChanged(let central), .identified(let central, _):
            DeliveryLoad(source: .changes(central.link), limit: PeripheralEvent.changeLimit)
        case .channelOpened(let central, _, _):
            DeliveryLoad(source: .channels(central.link), limit: PeripheralEvent.channelLimit)
        case .connected: DeliveryLoad(source: .connections, limit: PeripheralEvent.connectionLimit)
        case .restored, .stateChanged, .disconnected: nil
        }
    }
}
