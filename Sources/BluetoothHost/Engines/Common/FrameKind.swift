/// What a frame carries. The limits on unsent frames differ by kind.
enum FrameKind: Int {
    /// A notification, an indication or a command of an app.
    case value
    /// A request of the GATT client.
    case request
    /// A response of the GATT server.
    case reply
    /// The confirmation of a server's indication.
    case confirmation
    /// A PDU of the Security Manager.
    case security
    /// A command of the signaling channel.
    case signaling
    /// A K-frame of a credit-based channel.
    case channel
}
