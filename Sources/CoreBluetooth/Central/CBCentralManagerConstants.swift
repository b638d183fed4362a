// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The constants have the names that Apple gave them.

// MARK: Options of the manager

/// An `NSNumber`, a Boolean: whether the user is notified when Bluetooth is off. It has no effect on Linux.
public let CBCentralManagerOptionShowPowerAlertKey = "kCBInitOptionShowPowerAlert"
/// A `String` that identifies the manager across processes.
public let CBCentralManagerOptionRestoreIdentifierKey = "kCBInitOptionRestoreIdentifier"
/// An `NSNumber`, a Boolean: whether access to media devices is requested. It has no effect on Linux.
public let CBCentralManagerOptionDeviceAccessForMedia = "kCBInitOptionDeviceAccessForMedia"

// MARK: Options of a scan

/// An `NSNumber`, a Boolean: whether each received packet is reported.
public let CBCentralManagerScanOptionAllowDuplicatesKey = "kCBScanOptionAllowDuplicates"
/// `[CBUUID]`: peripherals that solicit one of these services are reported too, in addition to those that advertise a
/// service of the scan. A scan without services reports all peripherals anyway.
public let CBCentralManagerScanOptionSolicitedServiceUUIDsKey = "kCBScanOptionSolicitedServiceUUIDs"

// MARK: Options of a connection

/// An `NSNumber`, a Boolean: whether the user is notified of the connection while the app is suspended. It has no
/// effect on Linux, because apps are not suspended.
public let CBConnectPeripheralOptionNotifyOnConnectionKey = "kCBConnectOptionNotifyOnConnection"
/// See ``CBConnectPeripheralOptionNotifyOnConnectionKey``.
public let CBConnectPeripheralOptionNotifyOnDisconnectionKey = "kCBConnectOptionNotifyOnDisconnection"
/// See ``CBConnectPeripheralOptionNotifyOnConnectionKey``.
public let CBConnectPeripheralOptionNotifyOnNotificationKey = "kCBConnectOptionNotifyOnNotification"
/// An `NSNumber`: the seconds to wait before connecting, at most 86,400.
public let CBConnectPeripheralOptionStartDelayKey = "kCBConnectOptionStartDelay"
/// An `NSNumber`, a Boolean: whether classic profiles are connected too. It has no effect on Linux.
public let CBConnectPeripheralOptionEnableTransportBridgingKey = "kCBConnectOptionEnableTransportBridging"
/// An `NSNumber`, a Boolean: whether the peripheral requires Apple's notification service. It has no effect on Linux.
public let CBConnectPeripheralOptionRequiresANCS = "kCBConnectOptionRequiresANCS"
/// An `NSNumber`, a Boolean: whether the host reconnects after a connection is lost.
public let CBConnectPeripheralOptionEnableAutoReconnect = "kCBConnectOptionEnableAutoReconnect"

// MARK: Restored state

/// `[CBPeripheral]`: the peripherals that were connected or being connected.
public let CBCentralManagerRestoredStatePeripheralsKey = "kCBRestoredPeripherals"
/// `[CBUUID]`: the services that were scanned for.
public let CBCentralManagerRestoredStateScanServicesKey = "kCBRestoredScanServices"
/// `[String: Any]`: the options of the scan.
public let CBCentralManagerRestoredStateScanOptionsKey = "kCBRestoredScanOptions"

/// Whether a peripheral has connected to this host or disconnected.
public enum CBConnectionEvent: Int, Sendable {
    /// The last connection of this process to the peripheral has ended.
    case peerDisconnected = 0
    /// This process has connected to the peripheral.
    case peerConnected = 1
}

/// A criterion for the peripherals of ``CBCentralManager/registerForConnectionEvents(options:)``.
public struct CBConnectionEventMatchingOption: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    /// `[CBUUID]`: peripherals that have one of these services.
    public static let serviceUUIDs = CBConnectionEventMatchingOption(rawValue: "kCBConnectionEventMatchingServiceUUIDs")
    /// `[UUID]`: these peripherals.
    public static let peripheralUUIDs = CBConnectionEventMatchingOption(
        rawValue: "kCBConnectionEventMatchingPeripheralUUIDs"
    )
}

/// The former type of a manager's state. ``CBManagerState`` replaces it.
@available(*, deprecated, renamed: "CBManagerState")
public enum CBCentralManagerState: Int, Sendable {
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
