// Named as the options beside them are.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

// What Core Bluetooth on Linux has beyond Apple's: which adapter a manager uses, and how that is opened.

/// An option of ``CBCentralManager``: the adapter to use, a `String` such as `hci0`, `tcp:127.0.0.1:6402` or `virtual:lab`.
///
/// Without it the environment's `BLE_ADAPTER` names the adapter, and without that it is hci0. Managers of one process that
/// use the same adapter share one host, which is opened with the first of them and closed after the last. Only of a virtual
/// adapter each kind of manager has a controller of its own, both on the same air: so a process that has both ends of an app,
/// a test say, can let them talk to each other.
///
/// The value may also be an `Adapter` of the module BLE, which is open already and stays so: one of a simulated world, say.
public let CBCentralManagerOptionAdapterKey = "swift-ble.adapter"

/// An option of ``CBPeripheralManager``: the adapter to use; see ``CBCentralManagerOptionAdapterKey``.
public let CBPeripheralManagerOptionAdapterKey = "swift-ble.adapter"

/// An option of ``CBCentralManager``: the path of a file in which all HCI packets of its adapter are recorded (btsnoop). Of
/// managers that share an adapter, the first one's counts.
///
/// The capture holds the keys of the links in it, unless ``CBCentralManagerOptionCaptureMasksKeysKey`` is set. Only its owner
/// can read the file.
public let CBCentralManagerOptionCaptureKey = "swift-ble.capture"

/// An option of ``CBCentralManager``: an `NSNumber` or a `Bool`, whether keys are replaced by zeros in the capture that
/// ``CBCentralManagerOptionCaptureKey`` names, so that it can be given to others. Without it they are not.
///
/// Masked are keys in commands and events, the keys that devices give each other, and the values from which keys or passkeys
/// can be computed. Values of characteristics are not masked. Of managers that share an adapter, the first one's counts.
public let CBCentralManagerOptionCaptureMasksKeysKey = "swift-ble.captureMasksKeys"

/// An option of ``CBPeripheralManager``: where HCI packets are recorded; see ``CBCentralManagerOptionCaptureKey``.
public let CBPeripheralManagerOptionCaptureKey = "swift-ble.capture"

/// An option of ``CBPeripheralManager``: whether keys are replaced by zeros in the capture; see
/// ``CBCentralManagerOptionCaptureMasksKeysKey``.
public let CBPeripheralManagerOptionCaptureMasksKeysKey = "swift-ble.captureMasksKeys"

/// An option of ``CBCentralManager``: an `NSNumber` or a `Bool`, whether the host uses network privacy mode (Vol 6,
/// Part B, 4.7).
///
/// A bonded device that has a key for private addresses is then heard only under these. Its advertisements under its
/// identity address are dropped, and links under that address are ended. Without the option the host hears both
/// addresses.
///
/// The option of the manager that opens the adapter counts, until the last manager on it is released. On an adapter
/// that is open without network privacy, also on an `Adapter` that the app has opened, it has no effect and is reported.
public let CBCentralManagerOptionNetworkPrivacyKey = "swift-ble.networkPrivacy"

/// An option of ``CBPeripheralManager``: whether the host uses network privacy mode; see
/// ``CBCentralManagerOptionNetworkPrivacyKey``.
public let CBPeripheralManagerOptionNetworkPrivacyKey = "swift-ble.networkPrivacy"
