/// One L2CAP channel of the host, as its two streams use it.
///
/// Calls come from any thread and return at once.
protocol ChannelEngine: AnyObject, Sendable {
    /// Begins, once. What happens is handed to `deliver`, in order, on a thread of the host, and never from within another
    /// call of the engine.
    func start(_ deliver: @escaping @Sendable (ChannelEvent) -> Void)

    /// Takes octets to be sent and says how many it took; less than all makes it say
    /// ``ChannelEvent/readyToSend`` when there is room again.
    func send(_ octets: UnsafeBufferPointer<UInt8>) -> Int

    /// The app has read octets: the peer may send as many more.
    func consumed(_ count: Int)

    /// Ends the channel, once what was taken is sent.
    func close()
}

/// What happens on a channel.
enum ChannelEvent: Sendable {
    case received([UInt8])
    case readyToSend
    /// The channel has ended, with an error unless one of its ends has closed it; nothing follows.
    case closed(EngineError?)
}
