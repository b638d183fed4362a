import BluetoothTypes

/// The purpose of a timer of the host.
///
/// A key names its subject by an identifier. When the timer fires, the host looks the subject up. A key whose link or
/// call has ended does nothing. An engine whose deadline has moved does nothing either.
enum TimerKey {
    /// The deadline of an engine was reached.
    case engine(TimerQueue.Engine)

    // MARK: Links

    /// The sender looks for stalled links.
    case stallCheck
    /// The earliest deadline of a link's bearer, security, control, signaling and channels was reached.
    case link(LinkIdentifier)
    /// The next classification of channels may be sent.
    case channelClassification

    /// The oldest value to several clients no longer waits for those that have not taken it.
    case update

    // MARK: Security

    /// The pairing window ends.
    case pairingWindow

    // MARK: Calls

    /// A call of ``BluetoothHost/sleep(for:)`` ends.
    case sleep(CallToken)
    /// A closure runs: that of an app, or one that an async function of the host waits for.
    case action(() -> Void)
}
