import BLEHCI
import BluetoothTypes

/// The common parameters of the three Connection Complete events.
protocol ConnectionComplete {
    var status: HCIErrorCode { get }
    var connectionHandle: ConnectionHandle { get }
    var role: BLEHCI.Role { get }
    var peerAddress: PeerAddress { get }
    var connectionInterval: UInt16 { get }
    var peripheralLatency: UInt16 { get }
    var supervisionTimeout: UInt16 { get }
}

/// The additional parameters of the two enhanced Connection Complete events.
protocol EnhancedConnectionComplete: ConnectionComplete {
    var localResolvablePrivateAddress: DeviceAddress { get }
    var peerResolvablePrivateAddress: DeviceAddress { get }
}

extension LEConnectionComplete: ConnectionComplete {}
extension LEEnhancedConnectionComplete: EnhancedConnectionComplete {}
extension LEEnhancedConnectionCompleteV2: EnhancedConnectionComplete {}

/// A connection as the controller reports it.
struct NewConnection {
    let status: HCIErrorCode
    let handle: ConnectionHandle
    let role: BLEHCI.Role
    let peer: PeerAddress
    /// The private addresses that the controller used and resolved; nil if it did not.
    var localPrivateAddress: DeviceAddress?
    var peerPrivateAddress: DeviceAddress?
    let interval: UInt16
    let latency: UInt16
    let supervisionTimeout: UInt16
    /// Whether this host was found in a train that it receives, and not by an advertisement.
    var isFromReceivedTrain = false

    /// The peer's address as the controller reports it: the identity address, if the controller has resolved it.
    var peerAddress: DeviceAddress { peer.deviceAddress ?? DeviceAddress(peer.value, isRandom: true) }

    init(_ event: some ConnectionComplete) {
        status = event.status
        handle = event.connectionHandle
        role = event.role
        peer = event.peerAddress
        interval = event.connectionInterval
        latency = event.peripheralLatency
        supervisionTimeout = event.supervisionTimeout
    }

    init(enhanced event: some EnhancedConnectionComplete) {
        self.init(event)
        localPrivateAddress = NewConnection.privateAddress(event.localResolvablePrivateAddress)
        peerPrivateAddress = NewConnection.privateAddress(event.peerResolvablePrivateAddress)
    }

    /// The event contains an address of zero if there is none.
    private static func privateAddress(_ address: DeviceAddress) -> DeviceAddress? {
        address.value == 0 ? nil : address
    }
}
