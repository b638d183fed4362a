import BLEHCI
import BluetoothTypes

extension ConnectionPlan {
    /// What the next command depends on besides the attempts.
    struct Context {
        var usesExtendedCommands = false
        /// Whether the controller can initiate on the LE Coded PHY. Needs extended commands.
        var canInitiateOnCodedPHY = false
        var ownAddressType = OwnAddressType.public
        /// The number of addresses that the filter accept list holds. Without a list, one address is initiated at a
        /// time.
        var acceptListSize = 8
        /// Whether initiating must stop for a change of this host's addresses.
        var isHeld = false
        /// The peers of attempts that can only be connected to at an address at which a scan found them.
        var unresolvedPeers: Set<DeviceAddress> = []
        /// The peers of attempts that are named by identity address types, because they use private addresses. Only
        /// controllers without privacy modes need these types (Vol 4, Part E, 7.8.12).
        var peersWithIdentityTypes: Set<DeviceAddress> = []
        /// Whether the controller may scan, or is about to.
        var isScanning = false
        /// Whether the controller can initiate while it scans as it does now.
        var canInitiateWhileScanning = true
        /// Whether a scan is wanted for which initiating has to stop.
        var isScanKeptWaiting = false
        /// The running trains of the attempts in subevents.
        var trains: [AdvertisementIdentifier: RunningTrain] = [:]
    }

    /// The peers to which the controller is to initiate connections now, limited by the size of its filter accept list.
    struct Window: Equatable {
        /// The peers' addresses as the attempts name them.
        var peers: Set<DeviceAddress> = []
        /// The peers' addresses on the air.
        var addresses: Set<DeviceAddress> = []
        /// Whether other peers wait for their turn.
        var isPartial = false
    }

    /// Whether initiating waits until scanning has stopped, because the controller cannot do both at the same time.
    enum ScanWait {
        case none
        case waiting
        /// The host has stopped scanning, or has tried to.
        case over
    }

    /// Whether the controller may still initiate although the plan assumes that it does not.
    enum EndDoubt {
        case none
        /// A cancelled initiation has not ended with its event.
        case doubtful
        /// The plan has cancelled again, because the controller may still have initiated.
        case cancelledAgain
    }

    /// The private address at which a peer was found, if the controller cannot resolve the peer's addresses.
    struct FoundPeer: Equatable {
        let address: DeviceAddress
        /// When the peer must be searched for again.
        let deadline: Instant
    }
}
