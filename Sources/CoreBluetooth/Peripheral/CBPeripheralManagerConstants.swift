// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The constants have the names that Apple gave them.

import Foundation

/// An `NSNumber`, a Boolean: whether the user is notified when Bluetooth is off. It has no effect on Linux.
public let CBPeripheralManagerOptionShowPowerAlertKey = "kCBInitOptionShowPowerAlert"
/// A `String` that identifies the manager across processes.
public let CBPeripheralManagerOptionRestoreIdentifierKey = "kCBInitOptionRestoreIdentifier"
/// `[CBMutableService]`: the services that were published.
public let CBPeripheralManagerRestoredStateServicesKey = "kCBRestoredServices"
/// `[String: Any]`: the data that was advertised.
public let CBPeripheralManagerRestoredStateAdvertisementDataKey = "kCBRestoredAdvertisement"

/// The latency of a connection to a central. A lower latency takes more power.
public enum CBPeripheralManagerConnectionLatency: Int, Sendable {
    /// Requests a connection interval of 15 to 30 ms.
    case low = 0
    /// Requests a connection interval of 60 to 90 ms.
    case medium = 1
    /// Requests a connection interval of 180 to 240 ms, with a peripheral latency of 2 connection events.
    case high = 2
}

/// The former type of an app's authorization. ``CBManagerAuthorization`` replaces it.
@available(*, deprecated, message: "Use CBManagerAuthorization")
public enum CBPeripheralManagerAuthorizationStatus: Int, Sendable {
    /// Never the case on Linux.
    case notDetermined = 0
    /// Never the case on Linux.
    case restricted = 1
    /// Never the case on Linux.
    case denied = 2
    /// The app may use Bluetooth. This is the only value on Linux.
    case authorized = 3
}

/// The former type of a manager's state. ``CBManagerState`` replaces it.
@available(*, deprecated, renamed: "CBManagerState")
public enum CBPeripheralManagerState: Int, Sendable {
    /// See ``CBManagerState/unknown``.
    case unknown = 0
    /// See ``CBManagerState/resetting``.
    case resetting = 1
    /// See ``CBManagerState/unsupported``.
    case unsupported = 2
    /// See ``CBManagerState/unauthorized``.
    case unauthorized = 3
    /// See ``CBManagerState/poweredOff``.
    case poweredOff = 4
    /// See ``CBManagerState/poweredOn``.
    case poweredOn = 5
}
