@_exported import BluetoothHost
@_exported import BluetoothTypes
@_exported import GATT
@_exported import HCITransport
@_exported import SMP
