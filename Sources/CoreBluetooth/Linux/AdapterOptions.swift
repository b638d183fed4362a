// The constants are named like Apple's options.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

// Options of Core Bluetooth on Linux that Apple's framework does not have: which adapter a manager uses, and how the
// adapter is opened.

/// An option of ``CBCentralManager``: the adapter to use, a `String` such as `hci0`, `tcp:127.0.0.1:6402` or
/// `virtual:lab`.
///
/// Without the option, the environment variable `BLE_ADAPTER` names the adapter. Without both, it is hci0. Managers of
/// one process that use the same adapter share one host. The host is opened with the first of them and closed after the
/// last.
///
/// On a virtual adapter, each kind of manager has its own controller, and both controllers are on the same air. A
/// process that contains both ends of an app, such as a test, can connect them there.
///
/// The value may also be an `Adapter` of the module BLE that is open already. It is not closed with the managers. Do
/// not use an adapter of a `World` of the module BluetoothTesting: the world's time does not wait for the queues on
/// which managers call their delegates.
public let CBCentralManagerOptionAdapterKey = "swift-ble.adapter"

/// An option of ``CBPeripheralManager``: the adapter to use; see ``CBCentralManagerOptionAdapterKey``.
public let CBPeripheralManagerOptionAdapterKey = "swift-ble.adapter"

/// An option of ``CBCentralManager``: the path of a file in which all HCI packets of its adapter are recorded, as
/// pcapng if the path ends so, otherwise as btsnoop. If managers share an adapter, the option of the first one counts.
///
/// The capture contains the keys of its links, unless ``CBCentralManagerOptionCaptureMasksKeysKey`` is set. Only the
/// owner of the file can read it.
public let CBCentralManagerOptionCaptureKey = "swift-ble.capture"

/// An option of ``CBCentralManager``: an `NSNumber` or a `Bool`, whether keys are replaced by zeros in the capture that
/// ``CBCentralManagerOptionCaptureKey`` names, so that the capture can be shared. The default is false.
///
/// Masked are keys in commands and events, the keys that devices distribute, and the values from which keys or passkeys
/// can be computed. Values of characteristics are not masked. If managers share an adapter, the option of the first one
/// counts.
public let CBCentralManagerOptionCaptureMasksKeysKey = "swift-ble.captureMasksKeys"

/// An option of ``CBPeripheralManager``: the path of a file in which HCI packets are recorded; see
/// ``CBCentralManagerOptionCaptureKey``.
public let CBPeripheralManagerOptionCaptureKey = "swift-ble.capture"

/// An option of ``CBPeripheralManager``: whether keys are replaced by zeros in the capture; see
/// ``CBCentralManagerOptionCaptureMasksKeysKey``.
public let CBPeripheralManagerOptionCaptureMasksKeysKey = "swift-ble.captureMasksKeys"

/// An option of ``CBCentralManager``: an `NSNumber` or a `Bool`, whether the host uses network privacy mode (Vol 6,
/// Part B, 4.7).
///
/// In this mode, the host hears a bonded device that has a key for private addresses only under such addresses. The
/// device's advertisements under its identity address are dropped, and links under that address are ended. Without the
/// option, the host hears both kinds of addresses.
///
/// The option of the manager that opens the adapter counts, until the last manager on it is released. The option has no
/// effect, and is reported, if the adapter is already open without network privacy. This includes an `Adapter` that the
/// app has opened.
public let CBCentralManagerOptionNetworkPrivacyKey = "swift-ble.networkPrivacy"

/// An option of ``CBPeripheralManager``: whether the host uses network privacy mode; see
/// ``CBCentralManagerOptionNetworkPrivacyKey``.
public let CBPeripheralManagerOptionNetworkPrivacyKey = "swift-ble.networkPrivacy"
