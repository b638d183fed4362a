/// One L2CAP channel of the host, for the two streams of the channel.
///
/// Calls come from any thread and return at once.
protocol ChannelBackend: AnyObject, Sendable {
    /// Starts the channel. Called once. Events are passed to `deliver` in order, on a thread of the host, and never
    /// from within another call of the backend.
    func start(_ deliver: @escaping @Sendable (ChannelEvent) -> Void)

    /// Accepts as many bytes to send as there is space for.
    ///
    /// - Returns: the number of accepted bytes, and whether there is space for more. If there is none,
    ///   ``ChannelEvent/readyToSend`` follows when there is space again.
    func send(_ octets: UnsafeBufferPointer<UInt8>) -> (count: Int, hasRoom: Bool)

    /// Reports that the app has read bytes. The peer may send as many more.
    func consumed(_ count: Int)

    /// Ends the channel after the accepted bytes are sent.
    func close()
}

/// An event of a channel.
enum ChannelEvent: Sendable {
    case received([UInt8])
    case readyToSend
    /// The channel has ended, with an error unless either side has closed it. No event follows.
    case closed(BackendError?)
}
