import CoreBluetooth
import Testing

/// One line of a table: a symbol's name, its value, and the value that apps and peers rely on.
struct CatalogueEntry<Value: Equatable & Sendable>: Sendable, CustomTestStringConvertible {
    let symbol: String
    let value: Value
    let expected: Value

    init(_ symbol: String, _ value: Value, _ expected: Value) {
        self.symbol = symbol
        self.value = value
        self.expected = expected
    }

    var testDescription: String { symbol }
}

@Suite("Raw values and strings are equal to those of Apple's framework")
struct CatalogueTests {
    static let enumerations: [CatalogueEntry<Int>] = [
        .init("CBManagerState.unknown", CBManagerState.unknown.rawValue, 0),
        .init("CBManagerState.resetting", CBManagerState.resetting.rawValue, 1),
        .init("CBManagerState.unsupported", CBManagerState.unsupported.rawValue, 2),
        .init("CBManagerState.unauthorized", CBManagerState.unauthorized.rawValue, 3),
        .init("CBManagerState.poweredOff", CBManagerState.poweredOff.rawValue, 4),
        .init("CBManagerState.poweredOn", CBManagerState.poweredOn.rawValue, 5),
        .init("CBManagerAuthorization.notDetermined", CBManagerAuthorization.notDetermined.rawValue, 0),
        .init("CBManagerAuthorization.restricted", CBManagerAuthorization.restricted.rawValue, 1),
        .init("CBManagerAuthorization.denied", CBManagerAuthorization.denied.rawValue, 2),
        .init("CBManagerAuthorization.allowedAlways", CBManagerAuthorization.allowedAlways.rawValue, 3),
        .init("CBPeripheralState.disconnected", CBPeripheralState.disconnected.rawValue, 0),
        .init("CBPeripheralState.connecting", CBPeripheralState.connecting.rawValue, 1),
        .init("CBPeripheralState.connected", CBPeripheralState.connected.rawValue, 2),
        .init("CBPeripheralState.disconnecting", CBPeripheralState.disconnecting.rawValue, 3),
        .init("CBCharacteristicWriteType.withResponse", CBCharacteristicWriteType.withResponse.rawValue, 0),
        .init("CBCharacteristicWriteType.withoutResponse", CBCharacteristicWriteType.withoutResponse.rawValue, 1),
        .init("CBConnectionEvent.peerDisconnected", CBConnectionEvent.peerDisconnected.rawValue, 0),
        .init("CBConnectionEvent.peerConnected", CBConnectionEvent.peerConnected.rawValue, 1),
        .init("ConnectionLatency.low", CBPeripheralManagerConnectionLatency.low.rawValue, 0),
        .init("ConnectionLatency.medium", CBPeripheralManagerConnectionLatency.medium.rawValue, 1),
        .init("ConnectionLatency.high", CBPeripheralManagerConnectionLatency.high.rawValue, 2),
    ]

    @Test(arguments: enumerations)
    func enumerationCaseHasTheRawValueOfApple(_ entry: CatalogueEntry<Int>) {
        #expect(entry.value == entry.expected)
    }

    static let optionSets: [CatalogueEntry<UInt>] = [
        .init("Properties.broadcast", CBCharacteristicProperties.broadcast.rawValue, 0x01),
        .init("Properties.read", CBCharacteristicProperties.read.rawValue, 0x02),
        .init("Properties.writeWithoutResponse", CBCharacteristicProperties.writeWithoutResponse.rawValue, 0x04),
        .init("Properties.write", CBCharacteristicProperties.write.rawValue, 0x08),
        .init("Properties.notify", CBCharacteristicProperties.notify.rawValue, 0x10),
        .init("Properties.indicate", CBCharacteristicProperties.indicate.rawValue, 0x20),
        .init(
            "Properties.authenticatedSignedWrites",
            CBCharacteristicProperties.authenticatedSignedWrites.rawValue,
            0x40
        ),
        .init("Properties.extendedProperties", CBCharacteristicProperties.extendedProperties.rawValue, 0x80),
        .init(
            "Properties.notifyEncryptionRequired",
            CBCharacteristicProperties.notifyEncryptionRequired.rawValue,
            0x100
        ),
        .init(
            "Properties.indicateEncryptionRequired",
            CBCharacteristicProperties.indicateEncryptionRequired.rawValue,
            0x200
        ),
        .init("Permissions.readable", CBAttributePermissions.readable.rawValue, 0x01),
        .init("Permissions.writeable", CBAttributePermissions.writeable.rawValue, 0x02),
        .init("Permissions.readEncryptionRequired", CBAttributePermissions.readEncryptionRequired.rawValue, 0x04),
        .init("Permissions.writeEncryptionRequired", CBAttributePermissions.writeEncryptionRequired.rawValue, 0x08),
        .init("Feature.extendedScanAndConnect", CBCentralManager.Feature.extendedScanAndConnect.rawValue, 1),
    ]

    @Test(arguments: optionSets)
    func optionHasTheRawValueOfApple(_ entry: CatalogueEntry<UInt>) {
        #expect(entry.value == entry.expected)
    }

    static let errors: [CatalogueEntry<Int>] = [
        .init("unknown", CBError.unknown.rawValue, 0),
        .init("invalidParameters", CBError.invalidParameters.rawValue, 1),
        .init("invalidHandle", CBError.invalidHandle.rawValue, 2),
        .init("notConnected", CBError.notConnected.rawValue, 3),
        .init("outOfSpace", CBError.outOfSpace.rawValue, 4),
        .init("operationCancelled", CBError.operationCancelled.rawValue, 5),
        .init("connectionTimeout", CBError.connectionTimeout.rawValue, 6),
        .init("peripheralDisconnected", CBError.peripheralDisconnected.rawValue, 7),
        .init("uuidNotAllowed", CBError.uuidNotAllowed.rawValue, 8),
        .init("alreadyAdvertising", CBError.alreadyAdvertising.rawValue, 9),
        .init("connectionFailed", CBError.connectionFailed.rawValue, 10),
        .init("connectionLimitReached", CBError.connectionLimitReached.rawValue, 11),
        .init("unkownDevice", CBError.unkownDevice.rawValue, 12),
        .init("unknownDevice", CBError.unknownDevice.rawValue, 12),
        .init("Code.unknownDevice", CBError.Code.unknownDevice.rawValue, 12),
        .init("operationNotSupported", CBError.operationNotSupported.rawValue, 13),
        .init("peerRemovedPairingInformation", CBError.peerRemovedPairingInformation.rawValue, 14),
        .init("encryptionTimedOut", CBError.encryptionTimedOut.rawValue, 15),
        .init("tooManyLEPairedDevices", CBError.tooManyLEPairedDevices.rawValue, 16),
        .init(
            "leGattExceededBackgroundNotificationLimit",
            CBError.leGattExceededBackgroundNotificationLimit.rawValue,
            17
        ),
        .init("leGattNearBackgroundNotificationLimit", CBError.leGattNearBackgroundNotificationLimit.rawValue, 18),
        .init("success", CBATTError.success.rawValue, 0x00),
        .init("ATT invalidHandle", CBATTError.invalidHandle.rawValue, 0x01),
        .init("readNotPermitted", CBATTError.readNotPermitted.rawValue, 0x02),
        .init("writeNotPermitted", CBATTError.writeNotPermitted.rawValue, 0x03),
        .init("invalidPdu", CBATTError.invalidPdu.rawValue, 0x04),
        .init("insufficientAuthentication", CBATTError.insufficientAuthentication.rawValue, 0x05),
        .init("requestNotSupported", CBATTError.requestNotSupported.rawValue, 0x06),
        .init("invalidOffset", CBATTError.invalidOffset.rawValue, 0x07),
        .init("insufficientAuthorization", CBATTError.insufficientAuthorization.rawValue, 0x08),
        .init("prepareQueueFull", CBATTError.prepareQueueFull.rawValue, 0x09),
        .init("attributeNotFound", CBATTError.attributeNotFound.rawValue, 0x0A),
        .init("attributeNotLong", CBATTError.attributeNotLong.rawValue, 0x0B),
        .init("insufficientEncryptionKeySize", CBATTError.insufficientEncryptionKeySize.rawValue, 0x0C),
        .init("invalidAttributeValueLength", CBATTError.invalidAttributeValueLength.rawValue, 0x0D),
        .init("unlikelyError", CBATTError.unlikelyError.rawValue, 0x0E),
        .init("insufficientEncryption", CBATTError.insufficientEncryption.rawValue, 0x0F),
        .init("unsupportedGroupType", CBATTError.unsupportedGroupType.rawValue, 0x10),
        .init("insufficientResources", CBATTError.insufficientResources.rawValue, 0x11),
    ]

    @Test(arguments: errors)
    func errorCodeHasTheRawValueOfApple(_ entry: CatalogueEntry<Int>) {
        #expect(entry.value == entry.expected)
    }

    static let strings: [CatalogueEntry<String>] = [
        .init("CBErrorDomain", CBErrorDomain, "CBErrorDomain"),
        .init("CBATTErrorDomain", CBATTErrorDomain, "CBATTErrorDomain"),
        .init("LocalName", CBAdvertisementDataLocalNameKey, "kCBAdvDataLocalName"),
        .init("ManufacturerData", CBAdvertisementDataManufacturerDataKey, "kCBAdvDataManufacturerData"),
        .init("ServiceData", CBAdvertisementDataServiceDataKey, "kCBAdvDataServiceData"),
        .init("ServiceUUIDs", CBAdvertisementDataServiceUUIDsKey, "kCBAdvDataServiceUUIDs"),
        .init("OverflowServiceUUIDs", CBAdvertisementDataOverflowServiceUUIDsKey, "kCBAdvDataHashedServiceUUIDs"),
        .init("TxPowerLevel", CBAdvertisementDataTxPowerLevelKey, "kCBAdvDataTxPowerLevel"),
        .init("IsConnectable", CBAdvertisementDataIsConnectable, "kCBAdvDataIsConnectable"),
        .init(
            "SolicitedServiceUUIDs",
            CBAdvertisementDataSolicitedServiceUUIDsKey,
            "kCBAdvDataSolicitedServiceUUIDs"
        ),
        .init("AllowDuplicates", CBCentralManagerScanOptionAllowDuplicatesKey, "kCBScanOptionAllowDuplicates"),
        .init(
            "ScanOptionSolicited",
            CBCentralManagerScanOptionSolicitedServiceUUIDsKey,
            "kCBScanOptionSolicitedServiceUUIDs"
        ),
        .init("Central ShowPowerAlert", CBCentralManagerOptionShowPowerAlertKey, "kCBInitOptionShowPowerAlert"),
        .init("Peripheral ShowPowerAlert", CBPeripheralManagerOptionShowPowerAlertKey, "kCBInitOptionShowPowerAlert"),
        .init("Central Restore", CBCentralManagerOptionRestoreIdentifierKey, "kCBInitOptionRestoreIdentifier"),
        .init("Peripheral Restore", CBPeripheralManagerOptionRestoreIdentifierKey, "kCBInitOptionRestoreIdentifier"),
        .init("OnConnection", CBConnectPeripheralOptionNotifyOnConnectionKey, "kCBConnectOptionNotifyOnConnection"),
        .init(
            "OnDisconnection",
            CBConnectPeripheralOptionNotifyOnDisconnectionKey,
            "kCBConnectOptionNotifyOnDisconnection"
        ),
        .init(
            "OnNotification",
            CBConnectPeripheralOptionNotifyOnNotificationKey,
            "kCBConnectOptionNotifyOnNotification"
        ),
        .init("StartDelay", CBConnectPeripheralOptionStartDelayKey, "kCBConnectOptionStartDelay"),
        .init("RestoredPeripherals", CBCentralManagerRestoredStatePeripheralsKey, "kCBRestoredPeripherals"),
        .init("RestoredScanServices", CBCentralManagerRestoredStateScanServicesKey, "kCBRestoredScanServices"),
        .init("RestoredScanOptions", CBCentralManagerRestoredStateScanOptionsKey, "kCBRestoredScanOptions"),
        .init("RestoredServices", CBPeripheralManagerRestoredStateServicesKey, "kCBRestoredServices"),
        .init(
            "RestoredAdvertisement",
            CBPeripheralManagerRestoredStateAdvertisementDataKey,
            "kCBRestoredAdvertisement"
        ),
        .init("ExtendedProperties", CBUUIDCharacteristicExtendedPropertiesString, "2900"),
        .init("UserDescription", CBUUIDCharacteristicUserDescriptionString, "2901"),
        .init("ClientConfiguration", CBUUIDClientCharacteristicConfigurationString, "2902"),
        .init("ServerConfiguration", CBUUIDServerCharacteristicConfigurationString, "2903"),
        .init("Format", CBUUIDCharacteristicFormatString, "2904"),
        .init("AggregateFormat", CBUUIDCharacteristicAggregateFormatString, "2905"),
        .init("ValidRange", CBUUIDCharacteristicValidRangeString, "2906"),
        .init("L2CAPPSM", CBUUIDL2CAPPSMCharacteristicString, "ABDD3056-28FA-441D-A470-55A75A52553A"),
    ]

    @Test(arguments: strings)
    func stringEqualsThatOfApple(_ entry: CatalogueEntry<String>) {
        #expect(entry.value == entry.expected)
    }

    /// Keys whose values apps do not rely on. They exist and differ from each other.
    @Test("Keys of one dictionary differ from each other")
    func keysOfOneDictionaryDifferFromEachOther() {
        let connecting = [
            CBConnectPeripheralOptionNotifyOnConnectionKey, CBConnectPeripheralOptionNotifyOnDisconnectionKey,
            CBConnectPeripheralOptionNotifyOnNotificationKey, CBConnectPeripheralOptionStartDelayKey,
            CBConnectPeripheralOptionEnableTransportBridgingKey, CBConnectPeripheralOptionRequiresANCS,
            CBConnectPeripheralOptionEnableAutoReconnect,
        ]
        #expect(Set(connecting).count == connecting.count)
        let initializing = [
            CBCentralManagerOptionShowPowerAlertKey, CBCentralManagerOptionRestoreIdentifierKey,
            CBCentralManagerOptionDeviceAccessForMedia,
        ]
        #expect(Set(initializing).count == initializing.count)
        #expect(CBConnectionEventMatchingOption.serviceUUIDs != .peripheralUUIDs)
    }

    @Test("Every byte is an ATT error code with its raw value", arguments: 0...0xFF)
    func everyByteIsAnATTErrorCode(rawValue: Int) throws {
        let code = try #require(CBATTError.Code(rawValue: rawValue))
        #expect(code.rawValue == rawValue)
        #expect(code == CBATTError.Code(rawValue: rawValue))
        #expect((CBATTError(code) as NSError).code == rawValue)
        #expect((CBATTError(code) as any Error as? CBATTError)?.code == code)
        #expect((code == .unlikelyError) == (rawValue == 0x0E))
    }
}
