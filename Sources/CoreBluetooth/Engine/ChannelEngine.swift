/// One L2CAP channel of the host.
protocol ChannelEngine: AnyObject, Sendable {
    /// Begins, once. What comes is handed to `deliver`, in order.
    func start(_ deliver: @escaping @Sendable (ChannelEvent) -> Void)

    /// Takes octets to be sent and says how many it took; less than all makes it say
    /// ``ChannelEvent/readyToSend`` when there is room again.
    func send(_ octets: [UInt8]) -> Int

    /// The app has read octets: the peer may send as many more.
    func consumed(_ count: Int)

    /// Ends the channel.
    func close()
}

/// What happens on a channel.
enum ChannelEvent: Sendable {
    case received([UInt8])
    case readyToSend
    /// The peer has closed the channel, or the link is gone; nothing follows.
    case closed
}
