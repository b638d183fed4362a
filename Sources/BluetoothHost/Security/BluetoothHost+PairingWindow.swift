import BluetoothTypes

// The time during which peers may begin a pairing.
extension BluetoothHost {
    /// Lets peers begin pairings from now on for `duration`, if the policy is ``SecurityPolicy/Pairable/duringWindow``.
    /// A window that is open is replaced.
    package func openPairingWindow(for duration: Duration) {
        closePairingWindow()
        let end = loop.now + max(duration, .zero)
        pairing.window = (end, schedule(.pairingWindow, at: end))
    }

    /// Ends the window. Pairings in progress continue.
    package func closePairingWindow() {
        timers.cancel(pairing.window?.timer)
        pairing.window = nil
    }

    func pairingWindowExpired() {
        pairing.window = nil
        emit(.pairingWindowExpired)
    }
}
