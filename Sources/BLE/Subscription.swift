import BLEATT
import BLEGATT
import BluetoothHost

extension RemotePeripheral {
    /// The kind of subscription to prefer if the characteristic has both.
    public enum Preference: Sendable {
        /// Notifications, which are not confirmed.
        case notification
        /// Indications. The host confirms each one.
        case indication
    }

    /// Subscribes to a characteristic's value. The peer sends it at any time until the subscription is cancelled or
    /// released.
    ///
    /// A characteristic can have several subscriptions: each gets all values. When the last
    /// one ends, the peer stops sending (Vol 3, Part G, 3.3.3.3).
    ///
    /// - Parameters:
    ///   - characteristic: a characteristic of this peer.
    ///   - preference: the kind to prefer if the characteristic has both.
    ///   - bufferedValueLimit: the greatest number of values that wait for a reader, at least 1. If more arrive, the
    ///     oldest are dropped; see ``/BluetoothHost/HandleValue/droppedBefore``.
    /// - Throws: one of these errors, after which nothing stays subscribed:
    ///   - ``BLEError/notSupported(_:)`` if the characteristic has neither notifications nor indications
    ///   - ``BLEError/notFound(_:peer:)`` if it has no Client Characteristic Configuration
    ///   - ``BLEError/attribute(_:handle:)`` if the peer refuses
    ///   - ``BLEError/disconnected(_:)`` if the link ends
    ///   - ``BLEError/cancelled`` at once if the task is cancelled
    public func subscribe(
        to characteristic: RemoteCharacteristic,
        preferring preference: Preference = .notification,
        bufferedValueLimit: Int = 65_536
    ) async throws(BLEError) -> Subscription {
        let canNotify = characteristic.properties.contains(.notify)
        let canIndicate = characteristic.properties.contains(.indicate)
        guard canNotify || canIndicate else {
            throw .notSupported("characteristic \(characteristic.uuid) has neither notifications nor indications")
        }
        let link = try usableLink
        let descriptor = try await descriptor(.clientCharacteristicConfiguration, of: characteristic)
        let usesIndications = canIndicate && (preference == .indication || !canNotify)
        let buffer = AsyncEventBuffer<HandleValue, BLEError>(
            limit: max(bufferedValueLimit, 1),
            report: .mark { $0.droppedBefore = $1 },
            wakingBy: host.readers
        )
        let registered = ValueSubscription(
            to: characteristic.valueHandle,
            on: link,
            configuration: descriptor.handle,
            wanted: usesIndications ? .indication : .notification,
            isServiceChanged: characteristic.uuid == .serviceChanged,
            deliver: { buffer.append($0) },
            ended: { buffer.finish(.disconnected($0)) }
        )
        try await translating("subscribing") { () throws(HostError) in try await host.subscribe(registered) }
        return Subscription(host: host, buffer: buffer, registered: registered, connection: ending)
    }
}

/// The values of one characteristic that a peer sends.
///
/// The sequence ends with ``BLEError/disconnected(_:)`` when the link ends and when ``RemotePeripheral/disconnect()``
/// is called, also if another `RemotePeripheral` keeps the link. It ends without an error after ``cancel()``. If it is
/// released without ``cancel()``, it is cancelled. Several readers, cancellation and overflow are described in
/// <doc:EventSequences>; ``/BluetoothHost/HandleValue/droppedBefore`` reports dropped values.
public final class Subscription: AsyncSequence, Sendable {
    public typealias Element = HandleValue
    public typealias Failure = BLEError

    private let host: BluetoothHost
    private let buffer: AsyncEventBuffer<HandleValue, BLEError>
    private let registered: ValueSubscription
    private let connection: ConnectionEnd
    private let connectionObserver: UInt64

    init(
        host: BluetoothHost,
        buffer: AsyncEventBuffer<HandleValue, BLEError>,
        registered: ValueSubscription,
        connection: ConnectionEnd
    ) {
        self.host = host
        self.buffer = buffer
        self.registered = registered
        self.connection = connection
        connectionObserver = connection.observe { [host] reason in
            buffer.finish(.disconnected(reason))
            host.cleanUp { $0.beginUnsubscribing(registered) }
        }
    }

    deinit {
        connection.removeObserver(connectionObserver)
        let registered = registered
        host.cleanUp { $0.beginUnsubscribing(registered) }
    }

    /// The number of values that were dropped because the reader was too slow.
    public var droppedCount: Int { buffer.droppedCount }

    /// Ends the sequence after the values that have arrived. Other subscriptions of the characteristic continue.
    ///
    /// If there is none, turns values off at the peer and waits for its response. If the task is cancelled, returns at
    /// once.
    public func cancel() async {
        buffer.finish()
        await host.unsubscribe(registered)
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(subscription: self)
    }

    /// An iteration of a ``Subscription``.
    public struct Iterator: AsyncIteratorProtocol {
        /// Keeps the subscription alive.
        @usableFromInline
        let subscription: Subscription

        @inlinable
        public mutating func next() async throws(BLEError) -> HandleValue? {
            try await next(isolation: nil)
        }

        // Inlined into the loop of an app. A call would change the executor twice for each value.
        @inlinable
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(BLEError) -> HandleValue? {
            if let value = subscription.takeReady() { return value }
            return try await subscription.takeNext()
        }
    }

    /// Takes the next value, if there is one.
    @usableFromInline
    func takeReady() -> HandleValue? { buffer.takeReady() }

    /// Takes the next value, and waits for it if there is none.
    @usableFromInline
    nonisolated(nonsending) func takeNext() async throws(BLEError) -> HandleValue? { try await buffer.next() }
}
