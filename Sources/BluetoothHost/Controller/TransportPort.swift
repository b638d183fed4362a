import BLEHCITransport

/// The transport of a host to its controller.
struct TransportPort {
    /// Opens a transport; nil once the host was closed.
    private(set) var open: TransportOpener?
    /// The open transport; nil if there is none.
    private(set) var transport: (any Transport)?
    /// Sends a packet through the open transport.
    ///
    /// A call keeps this closure alive, not the transport. That costs less, because others refer to the transport
    /// weakly.
    private(set) var send: (@Sendable (RawSpan) -> Void)?
    /// Why the last attempt to open a transport has failed; nil if it has not.
    private(set) var failure: TransportError?
    /// The session's generation for which the transport was opened.
    private var generation: UInt64 = 0

    init(open: @escaping TransportOpener) {
        self.open = open
    }

    var isOpen: Bool { transport != nil }

    /// Whether input from the transport of this generation is handled. Input of earlier transports is ignored.
    func accepts(_ generation: UInt64) -> Bool {
        generation == self.generation && transport != nil
    }

    mutating func set(_ transport: any Transport, _ generation: UInt64) {
        self.transport = transport
        send = { transport.send($0) }
        self.generation = generation
    }

    mutating func setFailure(_ failure: TransportError?) { self.failure = failure }

    /// Removes the function that opens transports. It may hold what its transports share, such as a capture file.
    ///
    /// - Returns: the function, which the caller releases.
    mutating func removeOpener() -> TransportOpener? { open.take() }

    /// Removes the transport, which the caller closes and releases.
    mutating func remove() -> (any Transport)? {
        send = nil
        return transport.take()
    }
}
