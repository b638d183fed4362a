import BLEHCI
import BluetoothTypes

/// One side of a link to be opened.
struct LinkParty {
    let controller: VirtualController
    /// The resolvable private address that the controller generated for this link, if any.
    var localResolvablePrivateAddress: DeviceAddress?
    /// The peer as reported to the host: its identity if its address was resolved.
    let peer: PeerAddress
    /// The address that the peer used, if it was resolved.
    var peerResolvablePrivateAddress: DeviceAddress?
    /// The advertising set of the central's train in which the connection was requested; 0xFF for another connection.
    var advertisingHandle: UInt8 = 0xFF
    /// The peripheral's synchronization with that train; 0xFFFF for another connection.
    var syncHandle: UInt16 = 0xFFFF
}

/// The parameters of a link in the connection indication (Vol 6, Part B, 2.3.3.1).
struct LinkParameters: Hashable {
    /// In units of 1.25 ms.
    var interval: UInt16
    /// In connection events.
    var latency: UInt16
    /// In units of 10 ms.
    var supervisionTimeout: UInt16

    var intervalDuration: Duration { .microseconds(1250 * Int(interval)) }
    var supervisionDuration: Duration { .milliseconds(10 * Int(supervisionTimeout)) }

    /// Whether HCI allows the parameters (Vol 4, Part E, 7.8.12). Each must be in its range, and the supervision
    /// timeout must be longer than two intervals with their full latency.
    var areValid: Bool {
        (0x0006...0x0C80).contains(interval) && latency <= 0x01F3 && (0x000A...0x0C80).contains(supervisionTimeout)
            && Int(supervisionTimeout) * 4 > (1 + Int(latency)) * Int(interval)
    }
}
