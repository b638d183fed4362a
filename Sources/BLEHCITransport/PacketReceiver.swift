/// The receiver of the packets of a transport, on the transport's loop.
///
/// The receiver does not keep its owner alive. To make sure that the owner exists costs more than some of the layers
/// need for a packet. So a transport begins a batch for all packets that it has read together.
public final class PacketReceiver: Sendable {
    /// The owner, which exists until the end of the batch, and its function.
    public struct Batch {
        @usableFromInline
        let owner: AnyObject
        @usableFromInline
        let function: @Sendable (AnyObject, RawSpan) -> Void

        /// Hands a packet over. The span is valid only during the call.
        @inlinable
        public func receive(_ packet: RawSpan) {
            function(owner, packet)
        }
    }

    private weak let owner: (AnyObject & Sendable)?
    /// The owner, if it has no other.
    private let ownOwner: (AnyObject & Sendable)?
    private let function: @Sendable (AnyObject, RawSpan) -> Void

    /// Creates a receiver that calls `function` with each packet, as long as `owner` exists.
    public init<Owner: AnyObject & Sendable>(
        for owner: Owner,
        _ function: @escaping @Sendable (Owner, RawSpan) -> Void
    ) {
        self.owner = owner
        ownOwner = nil
        // A batch has no other owner.
        self.function = { owner, packet in function(unsafe unsafeDowncast(owner, to: Owner.self), packet) }
    }

    /// Creates a receiver that calls `function` with each packet.
    package init(_ function: @escaping @Sendable (RawSpan) -> Void) {
        let owner = NoOwner()
        self.owner = owner
        ownOwner = owner
        self.function = { _, packet in function(packet) }
    }

    /// Begins a batch.
    ///
    /// - Returns: nil if the owner exists no longer. The packets are then dropped.
    public func beginBatch() -> Batch? {
        owner.map { Batch(owner: $0, function: function) }
    }
}

private final class NoOwner: Sendable {}
