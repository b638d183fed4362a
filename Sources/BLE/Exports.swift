// The types that the public declarations of this module mention. A program that imports only `BLE` can name each of
// them, and nothing else of the modules below. Imports are grouped by topic, so:
// swift-format-ignore-file: OrderedImports

import BLEL2CAP
import BLESMP

// MARK: Adapters

@_exported import struct BluetoothHost.ControllerInformation
@_exported import enum BluetoothHost.HostEvent
@_exported import struct BluetoothTypes.Appearance
@_exported import struct BluetoothTypes.CompanyIdentifier
@_exported import struct BluetoothTypes.DeviceAddress
@_exported import struct BluetoothTypes.Instant
@_exported import struct BLEHCI.HCIErrorCode
@_exported import struct BLEHCI.LEFeatures
@_exported import struct BLEHCI.SupportedCommands
@_exported import struct BLEHCITransport.AdapterInventory
@_exported import struct BLEHCITransport.AdapterMonitor
@_exported import enum BLEHCITransport.AdapterSpecification
@_exported import struct BLEHCITransport.AdapterSpecificationError
@_exported import struct BLEHCITransport.KernelAdapter
@_exported import enum BLEHCITransport.TransportError
@_exported import struct Logging.Logger

// MARK: Scanning and advertising

@_exported import struct BluetoothHost.Advertisement
@_exported import struct BluetoothHost.AdvertisementConfiguration
@_exported import struct BluetoothHost.AdvertisingPHYs
@_exported import struct BluetoothHost.FailedSyncTransfer
@_exported import struct BluetoothHost.PeriodicAdvertisement
@_exported import struct BluetoothHost.PeriodicAdvertisingConfiguration
@_exported import struct BluetoothHost.PeriodicPlace
@_exported import struct BluetoothHost.PeriodicResponse
@_exported import struct BluetoothHost.PeriodicSubeventConfiguration
@_exported import struct BluetoothHost.PeriodicSubeventData
@_exported import struct BluetoothHost.PeriodicSubeventTiming
@_exported import struct BluetoothHost.PeriodicSyncTransferParameters
@_exported import struct BluetoothHost.PeriodicTrain
@_exported import struct BluetoothHost.PeriodicTrainRequest
@_exported import struct BluetoothHost.ScanOptions
@_exported import struct BluetoothTypes.ADStructure
@_exported import struct BluetoothTypes.ADType
@_exported import struct BluetoothTypes.AdvertisingData
@_exported import struct BluetoothTypes.AdvertisingFlags
@_exported import struct BluetoothTypes.EncryptedDataKeyMaterial
@_exported import enum BluetoothTypes.LERole

// MARK: Links

@_exported import struct BluetoothHost.ConnectionParameters
@_exported import enum BluetoothHost.DisconnectionReason
@_exported import enum BluetoothHost.LinkEvent
@_exported import struct BluetoothHost.LinkIdentifier
@_exported import struct BluetoothHost.LinkInformation
@_exported import enum BluetoothHost.BroadcastError
@_exported import struct BluetoothHost.BroadcastCode
@_exported import struct BluetoothHost.BroadcastGroupInformation
@_exported import struct BluetoothHost.BroadcastGroupParameters
@_exported import struct BluetoothHost.BroadcastReceptionParameters
@_exported import struct BluetoothHost.ConnectedGroupParameters
@_exported import struct BluetoothHost.IsochronousSDU
@_exported import struct BluetoothHost.LocalTransmitPower
@_exported import struct BluetoothHost.NegotiatedConnectionParameters
@_exported import struct BluetoothHost.PathLossReport
@_exported import struct BluetoothHost.PathLossThresholds
@_exported import struct BluetoothHost.SubrateParameters
@_exported import struct BluetoothHost.TransmitPower
@_exported import struct BluetoothHost.TransmitPowerChange
@_exported import struct BLEHCI.AdvertisingPHYOptions
@_exported import struct BLEHCI.ChannelMap
@_exported import struct BLEHCI.PathLossZone
@_exported import struct BLEHCI.PHY
@_exported import struct BLEHCI.PHYOptions
@_exported import struct BLEHCI.PHYSet

// MARK: Channel Sounding

@_exported import struct BluetoothHost.ChannelSoundingParameters
@_exported import struct BluetoothHost.ChannelSoundingProcedures
@_exported import struct BluetoothHost.ChannelSoundingSubevent
@_exported import struct BLEHCI.ChannelSoundingCapabilities
@_exported import struct BLEHCI.ChannelSoundingChannels
@_exported import struct BLEHCI.ChannelSoundingConfiguration
@_exported import struct BLEHCI.ChannelSoundingDoneStatus
@_exported import struct BLEHCI.ChannelSoundingMode
@_exported import struct BLEHCI.ChannelSoundingPacket
@_exported import struct BLEHCI.ChannelSoundingPHY
@_exported import struct BLEHCI.ChannelSoundingProgress
@_exported import struct BLEHCI.ChannelSoundingRole
@_exported import struct BLEHCI.ChannelSoundingRoles
@_exported import struct BLEHCI.ChannelSoundingRTTType
@_exported import struct BLEHCI.ChannelSoundingStep
@_exported import struct BLEHCI.ChannelSoundingTone
@_exported import struct BLEHCI.ChannelSoundingTones

// MARK: Attributes of peers

@_exported import struct BLEATT.ATTErrorCode
@_exported import struct BLEATT.HandleRange
@_exported import struct BluetoothHost.HandleValue
@_exported import struct BluetoothTypes.AttributeHandle
@_exported import struct BluetoothTypes.BluetoothUUID
@_exported import struct BLEGATT.CharacteristicProperties
@_exported import struct BLEGATT.IncludedService
@_exported import struct BLEGATT.TypedValue

// MARK: The server

@_exported import struct BLEGATT.AccessRequest
@_exported import struct BLEGATT.AttributePermissions
@_exported import struct BLEGATT.AttributeWrite
@_exported import struct BLEGATT.AuthorizationRequest
@_exported import struct BLEGATT.CharacteristicDefinition
@_exported import struct BLEGATT.DescriptorDefinition
@_exported import struct BLEGATT.PublishedCharacteristic
@_exported import struct BLEGATT.PublishedService
@_exported import struct BLEGATT.ServiceDefinition

// MARK: L2CAP channels

@_exported import enum BluetoothHost.ChannelEnd
@_exported import enum BluetoothHost.ChannelError
@_exported import struct BLEL2CAP.CreditBasedConnectionResult
@_exported import struct BLEL2CAP.CreditBasedReconfigureResult

// MARK: Security

@_exported import struct BluetoothHost.BondInformation
@_exported import struct BluetoothHost.PairingInquiry
@_exported import struct BluetoothHost.PairingResult
@_exported import struct BluetoothHost.RequiredSecurity
@_exported import enum BluetoothHost.SecurityError
@_exported import enum BluetoothHost.SecurityEvent
@_exported import struct BluetoothHost.SecurityPolicy
@_exported import enum BLESMP.AssociationModel
@_exported import enum BLESMP.IOCapability
@_exported import struct BLESMP.KeyStrength
@_exported import enum BLESMP.OutOfBandData
@_exported import enum BLESMP.OwnOutOfBandData
@_exported import struct BLESMP.P256PrivateKey
@_exported import enum BLESMP.PairingAnswer
@_exported import struct BLESMP.PairingFailedReason
@_exported import enum BLESMP.PairingFailure
@_exported import enum BLESMP.PairingQuestion

// MARK: Nested types

/// The way in which a peer broke the protocol of a channel; see ``/BluetoothHost/ChannelEnd/violation(_:)``.
public typealias ChannelViolation = CreditBasedChannel.Violation

/// A change of a passkey that a person enters; see ``Adapter/reportKeypress(_:for:)``.
public typealias Keypress = KeypressNotification.Kind
