import BLEHCI
import BluetoothTypes

/// The identifier of one advertisement of a host.
public struct AdvertisementIdentifier: Hashable, Sendable {
    let value: UInt64
}

/// What the caller of an ``AdvertisingPlan`` does after an input, in this order.
enum AdvertisingEffect: Equatable {
    /// End a call that waited for the start or the end of an advertisement. Nil means success.
    case finish(CallToken, HostError?)
    /// The addresses that the host wants depend on the advertisements: have the address plan run.
    case reconsiderAddresses
    /// This host's address on a link is that of the advertising set that led to the link; nil for the identity address.
    case ownAddressKnown(ConnectionHandle, DeviceAddress?)
    /// Log that an advertisement is off because of this failure and will be tried again.
    case retryLater(CommandFailure)
    /// Log this failure. It does not matter.
    case ignore(CommandFailure)
}
