/// A connection to one controller. It carries whole HCI packets, each with its H4 indicator first, in both directions.
///
/// A transport belongs to a loop: it makes its callbacks on that loop, and is called there only. No method blocks.
public protocol Transport: AnyObject, Sendable {
    /// Starts to deliver packets. Called once. May call `onEnd` before it returns, but not `onPacket`.
    ///
    /// - Parameters:
    ///   - onPacket: receives one packet from the controller. The span is valid only during the call.
    ///   - onEnd: called once with the reason if the transport ends, but not after ``close()``.
    func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    )

    /// Starts to deliver packets, likewise. A transport that reads several packets at a time delivers them in one
    /// batch.
    ///
    /// The default implementation delivers each packet in a batch of its own.
    ///
    /// - Parameters:
    ///   - receiver: receives the packets from the controller.
    ///   - onEnd: called once with the reason if the transport ends, but not after ``close()``.
    func start(
        receiver: PacketReceiver,
        onEnd: @escaping @Sendable (TransportError) -> Void
    )

    /// Sends one packet to the controller. Bytes that cannot be written at once are queued.
    ///
    /// Makes no callback before it returns: if the transport ends because of this packet, `onEnd` is called later.
    func send(_ packet: RawSpan)

    /// Closes the connection to the controller. No callback is made afterwards.
    func close()
}

extension Transport {
    public func start(
        receiver: PacketReceiver,
        onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        start(onPacket: { receiver.beginBatch()?.receive($0) }, onEnd: onEnd)
    }
}

/// Opens a new connection to the controller on each call.
public typealias TransportOpener = @Sendable () async throws(TransportError) -> any Transport
