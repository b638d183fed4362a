import BLE
import ESPHomeMessages
import ESPHomeProtocol

extension BluetoothUUID {
    /// The number of the 16-bit or 32-bit form; nil if the UUID has none.
    var shortNumber: UInt32? {
        let base = BluetoothUUID(UInt16(0)).value
        return value & (1 << 96 - 1) == base ? UInt32(value >> 96) : nil
    }

    /// Returns the form in which messages carry the UUID: a short number, or two halves, the most significant first.
    ///
    /// - Parameter usesShortForm: whether the client knows the short form.
    func messageForm(usesShortForm: Bool) -> (halves: [UInt64], short: UInt32) {
        // Zero means that there is no short form.
        if usesShortForm, let shortNumber, shortNumber != 0 { return ([], shortNumber) }
        return ([UInt64(value >> 64), UInt64(truncatingIfNeeded: value)], 0)
    }
}

extension Message {
    /// The message with one service of a device.
    ///
    /// - Parameter usesShortUUIDs: whether the client knows the short form of UUIDs; see ``APIVersion/hasShortUUIDs``.
    static func service(_ service: RemoteService, address: UInt64, usesShortUUIDs: Bool) -> Message {
        func form(_ uuid: BluetoothUUID) -> (halves: [UInt64], short: UInt32) {
            uuid.messageForm(usesShortForm: usesShortUUIDs)
        }
        var message = ESPHomeBluetoothGATTService()
        (message.uuid, message.shortUuid) = form(service.uuid)
        message.handle = UInt32(service.handle.rawValue)
        message.characteristics = service.characteristics.map { characteristic in
            var message = ESPHomeBluetoothGATTCharacteristic()
            (message.uuid, message.shortUuid) = form(characteristic.uuid)
            // Clients read, write and subscribe by the handle of the value.
            message.handle = UInt32(characteristic.valueHandle.rawValue)
            message.properties = UInt32(characteristic.properties.rawValue)
            message.descriptors = characteristic.descriptors.map { descriptor in
                var message = ESPHomeBluetoothGATTDescriptor()
                (message.uuid, message.shortUuid) = form(descriptor.uuid)
                message.handle = UInt32(descriptor.handle.rawValue)
                return message
            }
            return message
        }
        var response = ESPHomeBluetoothGATTGetServicesResponse()
        response.address = address
        response.services = [message]
        return Message(.getServicesResponse, response)
    }

    /// The message after the last service of a device.
    static func servicesDone(address: UInt64) -> Message {
        var response = ESPHomeBluetoothGATTGetServicesDoneResponse()
        response.address = address
        return Message(.getServicesDoneResponse, response)
    }
}
