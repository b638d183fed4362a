import BluetoothTypes

/// The purpose of a timer of the host.
///
/// A key names its subject by an identifier or a generation. When the timer fires, the host looks the subject up. A key
/// is stale if its link or its call has ended, or if the controller was reset. A stale key does nothing.
enum TimerKey {
    // MARK: Controller

    /// The session's deadline was reached.
    case session
    /// The sender looks for stalled links.
    case stallCheck

    // MARK: Links

    /// The earliest deadline of a link's bearer, security, control, signaling and channels was reached.
    case link(LinkIdentifier)

    // MARK: GAP

    /// The earliest deadline of the attempts to connect, their turns and the controller's initiation was reached.
    case connecting
    /// The scan may have been silent for too long.
    case scanSilence
    /// Advertisements are started again, or one that failed is tried again.
    case advertising
    /// The host takes its next private address.
    case addressRotation

    // MARK: Security

    /// The pairing window ends.
    case pairingWindow

    // MARK: Calls

    /// A call of ``BluetoothHost/sleep(for:)`` ends.
    case sleep(CallToken)
    /// A closure runs: that of an app, or one that an async function of the host waits for.
    case action(() -> Void)
}
