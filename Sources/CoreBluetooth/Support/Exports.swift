// An app that imports only Core Bluetooth can use these modules through it, as with Apple's framework.
@_exported import CoreFoundation
@_exported import Dispatch
@_exported import Foundation

// The rest are types in this module's declarations that are not part of Apple's API.
@_exported import struct BLE.Events
@_exported import protocol BLE.PairingDelegate
@_exported import struct BLEHCI.PHYSet
@_exported import enum BLESMP.AssociationModel
@_exported import enum BLESMP.IOCapability
@_exported import struct BLESMP.KeyStrength
@_exported import enum BLESMP.PairingAnswer
@_exported import enum BLESMP.PairingQuestion
@_exported import struct BluetoothHost.BondInformation
@_exported import struct BluetoothHost.ConnectionParameters
@_exported import struct BluetoothHost.LinkInformation
@_exported import struct BluetoothHost.PairingInquiry
@_exported import struct BluetoothHost.SecurityPolicy
@_exported import struct BluetoothTypes.AdvertisingData
@_exported import struct BluetoothTypes.DeviceAddress
