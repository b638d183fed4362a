import BLEHCI

extension ScanPlan {
    /// What the next command depends on besides the scans.
    struct Context {
        var usesExtendedCommands = false
        /// Whether the controller can scan on the LE Coded PHY.
        var canScanCodedPHY = false
        var ownAddressType = OwnAddressType.public
        /// Whether peers to connect to must be found by scanning first.
        var isResolvingPeers = false
        /// Whether the search for peers or trains includes the LE Coded PHY.
        var searchesOnCodedPHY = false
        /// Whether scanning must stop for a change of this host's addresses.
        var isHeld = false
        /// Whether the controller initiates a connection, or is to do so now.
        var isInitiating = false
        /// Whether the controller can scan while it initiates.
        var canScanPassivelyWhileInitiating = true
        var canScanActivelyWhileInitiating = true

        func canScanWhileInitiating(actively: Bool) -> Bool {
            actively ? canScanActivelyWhileInitiating : canScanPassivelyWhileInitiating
        }
    }
}
