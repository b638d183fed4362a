import BLEHCI
import BluetoothTypes

/// A request for a connection to any of several peers.
struct ConnectionAttempt: Equatable {
    let identifier: UInt64
    let addresses: Set<DeviceAddress>
    let parameters: ConnectionParameters
    /// When the attempt fails; nil for no limit.
    var deadline: Instant?
    /// Whether a peer was received on the LE Coded PHY, so that the controller initiates on that PHY too.
    var usesCodedPHY = false
    /// The subevent in which the connection is requested; nil for a connection to an advertiser.
    var subevent: SubeventTarget?
}

/// A subevent of an advertisement's train, in which a connection is requested.
struct SubeventTarget: Hashable {
    let advertisement: AdvertisementIdentifier
    let number: UInt8
}

/// A periodic train that the controller sends.
struct RunningTrain: Hashable {
    let advertisingHandle: UInt8
    /// The PHY of the train, and of connections that are requested in it.
    let phy: PHY
}

/// What the caller of a ``ConnectionPlan`` does after an input.
enum ConnectionEffect: Equatable {
    /// Report that an attempt has failed. The plan has removed it.
    case fail(ConnectionAttempt, HostError)
    /// Find the link to one of these peers: the controller answered that there is one. Two devices have at most one
    /// link (Vol 6, Part B, 4.5).
    case useExistingLink(Set<DeviceAddress>)
    /// Log that the controller refused to initiate on LE Coded. The plan does not use this PHY until the next reset.
    case codedRefused(CommandFailure)
    /// Have this plan run, because the wanted state has changed.
    case run
    /// Have the plan of scanning run, likewise.
    case runScan
}

extension Set<DeviceAddress> {
    /// The addresses in an order that is the same in each run.
    var inOrder: [DeviceAddress] {
        sorted { ($0.isRandom ? 1 : 0, $0.value) < ($1.isRandom ? 1 : 0, $1.value) }
    }
}
