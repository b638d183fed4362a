import BluetoothTypes

// The time during which peers may begin a pairing.
extension BluetoothHost {
    /// Lets peers begin pairings from now on for `duration`, if the policy is ``SecurityPolicy/Pairable/duringWindow``.
    /// A window that is open is replaced.
    package func openPairingWindow(for duration: Duration) {
        closePairingWindow()
        let end = loop.now + max(duration, .zero)
        pairingWindow = (end, schedule(.pairingWindow, at: end))
    }

    /// Ends the window. Pairings in progress continue.
    package func closePairingWindow() {
        timers.cancel(pairingWindow?.timer)
        pairingWindow = nil
    }

    func pairingWindowExpired() {
        pairingWindow = nil
        emit(.pairingWindowExpired)
    }

    var isPairingWindowOpen: Bool { pairingWindow.map { loop.now < $0.end } ?? false }
}
