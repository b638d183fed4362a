import BluetoothTypes
import HCI

/// One side of a link that is being made.
struct LinkParty {
    let controller: VirtualController
    /// The resolvable private address that the controller itself made for this link, if it did.
    var localResolvablePrivateAddress: DeviceAddress?
    /// The peer as the host is told of it: its identity where its address was resolved.
    let peer: PeerAddress
    /// The address that the peer used, where that was resolved.
    var peerResolvablePrivateAddress: DeviceAddress?
}

/// What the connection indication says of a link (Vol 6, Part B, 2.3.3.1).
struct LinkParameters: Hashable {
    /// In units of 1.25 ms.
    var interval: UInt16
    /// In connection events.
    var latency: UInt16
    /// In units of 10 ms.
    var supervisionTimeout: UInt16

    var intervalDuration: Duration { .microseconds(1250 * Int(interval)) }
    var supervisionDuration: Duration { .milliseconds(10 * Int(supervisionTimeout)) }

    /// Whether HCI allows them (Vol 4, Part E, 7.8.12): each in its range, and a supervision timeout longer than two
    /// intervals with all their latency.
    var areValid: Bool {
        (0x0006...0x0C80).contains(interval) && latency <= 0x01F3 && (0x000A...0x0C80).contains(supervisionTimeout)
            && Int(supervisionTimeout) * 4 > (1 + Int(latency)) * Int(interval)
    }
}
