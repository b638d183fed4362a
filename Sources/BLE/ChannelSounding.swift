import BLEHCI
import BluetoothHost

// Channel Sounding (Vol 6, Part H): two connected devices measure the phases and travel times of signals between them.
// This module gives the raw results of this device. It computes no distance. A distance also needs the results of the
// peer, which the Ranging Service transfers, and an algorithm that is calibrated for the antennas of both devices.

/// An event of a session of Channel Sounding.
public enum ChannelSoundingEvent: Sendable, Hashable {
    /// The controllers perform the procedures from now on.
    case started(ChannelSoundingProcedures)
    /// The results of one subevent, as this device's controller has measured them.
    case subevent(ChannelSoundingSubevent)
    /// As many events were dropped at this place, because the reader was too slow.
    case eventsDropped(Int)
}

extension Adapter {
    /// Whether the controller supports Channel Sounding.
    ///
    /// - Throws: the errors of ``information``.
    public var supportsChannelSounding: Bool {
        get async throws(BLEError) { try await information.supportsChannelSounding }
    }

    /// Reads what the controller can do in Channel Sounding.
    ///
    /// - Throws:
    ///   - ``BLEError/notSupported(_:)`` if the controller does not support it
    ///   - ``BLEError/controllerFailed(_:)`` if the controller refuses the command
    ///   - ``BLEError/notReady`` while the controller is being brought up again
    ///   - ``BLEError/closed`` after ``Adapter/close()``
    public func channelSoundingCapabilities() async throws(BLEError) -> ChannelSoundingCapabilities {
        try await translating { () throws(HostError) in try await host.channelSoundingCapabilities() }
    }
}

extension RemotePeripheral {
    /// Performs Channel Sounding with the peripheral for as long as the result is iterated. The link must be encrypted.
    /// If the peripheral is bonded, the first procedure waits until its identity is verified.
    ///
    /// ```swift
    /// try await peripheral.pair()
    /// for try await event in peripheral.channelSounding() {
    ///     guard case .subevent(let subevent) = event else { continue }
    ///     try subevent.forEachStep { step in print(step.channel, step.mode) }
    /// }
    /// ```
    public func channelSounding(
        _ parameters: ChannelSoundingParameters = ChannelSoundingParameters()
    ) -> ChannelSoundingEvents {
        ChannelSoundingEvents(connection: connection, parameters: parameters)
    }
}

extension Peripheral {
    /// Performs Channel Sounding with a client for as long as the result is iterated; see
    /// ``RemotePeripheral/channelSounding(_:)``. By default, this device is the reflector and waits for the client.
    public func channelSounding(
        with client: ClientID,
        _ parameters: ChannelSoundingParameters = ChannelSoundingParameters(role: .reflector)
    ) -> ChannelSoundingEvents {
        ChannelSoundingEvents(connection: connection(to: client), parameters: parameters)
    }
}

/// The events of a session of Channel Sounding; see ``RemotePeripheral/channelSounding(_:)``.
///
/// Each iteration is a session of its own, which starts with the first call of `next()` and stops when its iterator is
/// released. A link has one session at a time. The sequence ends after all procedures, and when the peer stops them.
/// Otherwise it ends with one of these errors:
/// - ``BLEError/notSupported(_:)``: a controller does not support Channel Sounding, or not this role
/// - ``BLEError/security(_:)``: the link is not encrypted, or the identity of a bonded peer cannot be verified
/// - ``BLEError/invalidArgument(_:)``: a parameter is out of its range, or another session runs on the link
/// - ``BLEError/controllerFailed(_:)``: a controller refuses a step
/// - ``BLEError/timedOut(_:)``: a step takes longer than 40 s
/// - ``BLEError/disconnected(_:)``: the link has ended, or ``RemotePeripheral/disconnect()`` was called before the
///   iteration. The reason is Authentication Failure if the link may continue, but the identity of its bonded peer is
///   no longer verified, for example because encryption has ended
/// - ``BLEError/closed``: the adapter was closed
///
/// Cancellation and overflow are described in <doc:EventSequences>.
public struct ChannelSoundingEvents: AsyncSequence, Sendable {
    public typealias Element = ChannelSoundingEvent
    public typealias Failure = BLEError

    let connection: Connection
    let parameters: ChannelSoundingParameters

    public func makeAsyncIterator() -> Iterator {
        Iterator(events: self)
    }

    /// An iteration of ``ChannelSoundingEvents``: one session.
    public struct Iterator: AsyncIteratorProtocol {
        private let events: ChannelSoundingEvents
        private var session: Session?

        init(events: ChannelSoundingEvents) {
            self.events = events
        }

        public mutating func next() async throws(BLEError) -> ChannelSoundingEvent? {
            try await next(isolation: nil)
        }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(BLEError) -> ChannelSoundingEvent? {
            if let session { return try await session.buffer.next() }
            if Task.isCancelled { throw .cancelled }
            let link = try events.connection.link()
            let session = await Session(on: link, of: events.connection.host, events.parameters)
            self.session = session
            return try await session.buffer.next()
        }
    }
}

/// A session that runs.
private struct Session {
    /// A subevent has at most 8 KB of steps.
    let buffer = AsyncEventBuffer<ChannelSoundingEvent, BLEError>(limit: 256, report: .element { .eventsDropped($0) })
    let registration: Registration

    init(on link: LinkIdentifier, of host: BluetoothHost, _ parameters: ChannelSoundingParameters) async {
        let session = await host.startChannelSounding(parameters, on: link) { [buffer] event in
            switch event {
            case .started(let procedures): buffer.append(.started(procedures))
            case .subevent(let subevent): buffer.append(.subevent(subevent))
            case .ended(let error?): buffer.finish(BLEError(error))
            case .ended(nil): buffer.finish()
            }
        }
        registration = Registration { host.cleanUp { $0.stopChannelSounding(session) } }
    }
}
