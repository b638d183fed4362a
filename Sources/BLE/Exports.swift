// The types that the public declarations of this module mention. A program that imports only `BLE` can name each of
// them, and nothing else of the modules below. Imports are grouped by topic, so:
// swift-format-ignore-file: OrderedImports

import L2CAP
import SMP

// MARK: Adapters

@_exported import struct BluetoothHost.ControllerInformation
@_exported import enum BluetoothHost.HostEvent
@_exported import struct BluetoothTypes.Appearance
@_exported import struct BluetoothTypes.CompanyIdentifier
@_exported import struct BluetoothTypes.DeviceAddress
@_exported import struct BluetoothTypes.Instant
@_exported import struct HCI.ErrorCode
@_exported import struct HCI.LEFeatures
@_exported import struct HCI.SupportedCommands
@_exported import enum HCITransport.AdapterSpecification
@_exported import struct HCITransport.AdapterSpecificationError
@_exported import enum HCITransport.TransportError
@_exported import struct Logging.Logger

// MARK: Scanning and advertising

@_exported import struct BluetoothHost.Advertisement
@_exported import struct BluetoothHost.AdvertisementConfiguration
@_exported import struct BluetoothHost.ScanOptions
@_exported import struct BluetoothTypes.ADStructure
@_exported import struct BluetoothTypes.ADType
@_exported import struct BluetoothTypes.AdvertisingData
@_exported import struct BluetoothTypes.AdvertisingFlags
@_exported import enum BluetoothTypes.LERole

// MARK: Links

@_exported import struct BluetoothHost.ConnectionParameters
@_exported import enum BluetoothHost.DisconnectionReason
@_exported import struct BluetoothHost.LinkIdentifier
@_exported import struct BluetoothHost.LinkInformation
@_exported import struct BluetoothHost.NegotiatedConnectionParameters
@_exported import struct HCI.PHY
@_exported import struct HCI.PHYSet

// MARK: Attributes of peers

@_exported import struct ATT.ErrorCode
@_exported import struct ATT.HandleRange
@_exported import struct BluetoothHost.HandleValue
@_exported import struct BluetoothTypes.AttributeHandle
@_exported import struct BluetoothTypes.BluetoothUUID
@_exported import struct GATT.CharacteristicProperties
@_exported import struct GATT.IncludedService
@_exported import struct GATT.TypedValue

// MARK: The server

@_exported import struct GATT.AccessRequest
@_exported import struct GATT.AttributePermissions
@_exported import struct GATT.AttributeWrite
@_exported import struct GATT.AuthorizationRequest
@_exported import struct GATT.CharacteristicDefinition
@_exported import struct GATT.DescriptorDefinition
@_exported import struct GATT.PublishedCharacteristic
@_exported import struct GATT.PublishedService
@_exported import struct GATT.ServiceDefinition

// MARK: L2CAP channels

@_exported import enum BluetoothHost.ChannelEnd
@_exported import enum BluetoothHost.ChannelError
@_exported import struct L2CAP.CreditBasedConnectionResult
@_exported import struct L2CAP.CreditBasedReconfigureResult

// MARK: Security

@_exported import struct BluetoothHost.BondInformation
@_exported import struct BluetoothHost.PairingInquiry
@_exported import struct BluetoothHost.PairingResult
@_exported import struct BluetoothHost.RequiredSecurity
@_exported import enum BluetoothHost.SecurityError
@_exported import enum BluetoothHost.SecurityEvent
@_exported import struct BluetoothHost.SecurityPolicy
@_exported import enum SMP.AssociationModel
@_exported import enum SMP.IOCapability
@_exported import struct SMP.KeyStrength
@_exported import enum SMP.OutOfBandData
@_exported import enum SMP.OwnOutOfBandData
@_exported import struct SMP.P256PrivateKey
@_exported import enum SMP.PairingAnswer
@_exported import struct SMP.PairingFailedReason
@_exported import enum SMP.PairingFailure
@_exported import enum SMP.PairingQuestion

// MARK: Nested types

/// The way in which a peer broke the protocol of a channel; see ``/BluetoothHost/ChannelEnd/violation(_:)``.
public typealias ChannelViolation = CreditBasedChannel.Violation

/// A change of a passkey that a person enters; see ``Adapter/reportKeypress(_:for:)``.
public typealias Keypress = KeypressNotification.Kind
