import BluetoothTypes

// When peers may begin a pairing.
extension BluetoothHost {
    /// Lets peers begin pairings from now on for `duration`, where the policy is ``SecurityPolicy/Pairable/duringWindow``.
    /// A window that is open is replaced.
    package func openPairingWindow(for duration: Duration) {
        pairingWindowEnd = loop.now + max(duration, .zero)
    }

    /// Ends the window. Pairings under way continue.
    package func closePairingWindow() {
        pairingWindowEnd = nil
    }

    var isPairingWindowOpen: Bool { pairingWindowEnd.map { loop.now < $0 } ?? false }
}
