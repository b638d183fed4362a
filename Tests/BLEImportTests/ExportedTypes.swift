import BLE

/// Each type that the public declarations of `BLE` mention. If one of them is not exported, this file does not compile.
let exportedTypes: [Any.Type] = [
    // Declared by BLE
    Adapter.self, AdvertisingSet.self, BLEError.self, Central.self, ChannelListener.self, ChannelSecurity.self,
    ChannelViolation.self, ClientID.self, ConnectedClient.self, Events<HostEvent>.self, Keypress.self,
    L2CAPChannel.self, MaintainedConnection.self, MissingAttribute.self, Peripheral.self, PeripheralEvent.self,
    ReconnectionBackoff.self, ReliableWrite.self, RemoteCharacteristic.self, RemoteDescriptor.self,
    RemotePeripheral.self, RemoteService.self, ScanResults.self, Subscription.self, WriteKind.self,
    (any PairingDelegate).self, Adapter.Configuration.self, Adapter.StateLocation.self,
    L2CAPChannel.Configuration.self, MaintainedConnection.State.self, Peripheral.ValueHandler.self,
    // Adapters
    ControllerInformation.self, HostEvent.self, Appearance.self, CompanyIdentifier.self, DeviceAddress.self,
    Instant.self, HCIErrorCode.self, LEFeatures.self, SupportedCommands.self, AdapterSpecification.self,
    AdapterSpecificationError.self, AdapterInventory.self, AdapterMonitor.self, KernelAdapter.self,
    TransportError.self, Logger.self,
    // Scanning and advertising
    Advertisement.self, AdvertisementConfiguration.self, ScanOptions.self, ADType.self,
    AdvertisingData.self, AdvertisingFlags.self, LERole.self,
    // Links
    ConnectionParameters.self, DisconnectionReason.self, LinkIdentifier.self, LinkInformation.self,
    NegotiatedConnectionParameters.self, PHY.self, PHYSet.self,
    // Attributes of peers
    ATTErrorCode.self, HandleRange.self, HandleValue.self, AttributeHandle.self, BluetoothUUID.self,
    CharacteristicProperties.self, IncludedService.self, TypedValue.self,
    // The server
    AccessRequest.self, AttributePermissions.self, AttributeWrite.self, AuthorizationRequest.self,
    CharacteristicDefinition.self, DescriptorDefinition.self, PublishedCharacteristic.self, PublishedService.self,
    ServiceDefinition.self,
    // L2CAP channels
    ChannelEnd.self, ChannelError.self, CreditBasedConnectionResult.self, CreditBasedReconfigureResult.self,
    // Security
    BondInformation.self, PairingInquiry.self, PairingResult.self, RequiredSecurity.self, SecurityError.self,
    SecurityEvent.self, SecurityPolicy.self, AssociationModel.self, IOCapability.self, KeyStrength.self,
    OutOfBandData.self, OwnOutOfBandData.self, P256PrivateKey.self, PairingAnswer.self, PairingFailedReason.self,
    PairingFailure.self, PairingQuestion.self,
]

/// A structure of advertising data borrows its bytes, so it has no place in the array.
func length(of structure: borrowing ADStructure) -> Int { structure.data.byteCount }
