/// A way to one controller: whole HCI packets, each with its H4 indicator first, in both directions.
///
/// A transport belongs to a loop: it calls on that loop, and is called there only. None of its calls block.
public protocol Transport: AnyObject, Sendable {
    /// Begins to deliver. Called once.
    ///
    /// - Parameters:
    ///   - onPacket: takes one packet from the controller; the span is good for the call only.
    ///   - onEnd: is told once why the transport has ended; not after ``close()``.
    func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    )

    /// Sends one packet to the controller; what cannot be written at once is queued.
    func send(_ packet: RawSpan)

    /// Lets the controller go. Nothing is delivered after it.
    func close()
}

/// Makes a new connection to the controller, each time it is called.
public typealias TransportOpener = @Sendable () async throws(TransportError) -> any Transport
