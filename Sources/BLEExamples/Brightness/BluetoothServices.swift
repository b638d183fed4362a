// swift-format-ignore-file: AlwaysUseLowerCamelCase

import CoreBluetooth
import Foundation

let DEVICE_INFORMATION_SERVICE_UUID = "908D66AF-2751-4483-BD8E-8E99A92CC2F3"
let DEVICE_INFORMATION_NAME_CHARACTERISTIC_UUID = "06BBE1E1-100E-430D-A62B-7B2421810813"
let DEVICE_INFORMATION_MESSAGE_CHARACTERISTIC_UUID = "B53D35B6-ADA0-42F7-8A75-C4433D81E729"
let DEVICE_BRIGHTNESS_SERVICE_UUID = "70DE0751-1127-456C-AB03-D00E202E3754"
let DEVICE_BRIGHTNESS_VALUE_CHARACTERISTIC_UUID = "66D311CB-4AD7-4CD7-A8B7-D3225ACB779E"
let DEVICE_UUID = "F59F037A-4992-42FD-8F0D-8B8D0594FF59"

struct Services {
    static func getDeviceInformationService() -> CBMutableService {
        var characteristics = [Characteristic]()

        // Create the Device Name characteristics
        characteristics.append(getdeviceNameCharacteristic())
        // Create the Message characteristics
        characteristics.append(getMessageCharacteristic())

        // Create the Device Information Service
        let service = createService(
            uuid: DEVICE_INFORMATION_SERVICE_UUID,
            primary: true,
            name: "Device Information Service",
            characteristics: characteristics
        )

        return service
    }

    private static func getdeviceNameCharacteristic() -> Characteristic {
        return Characteristic(
            uuid: DEVICE_INFORMATION_NAME_CHARACTERISTIC_UUID,
            property: .read,
            value: Device.current.name,
            permission: .readable,
            userDescription: "Device Name",
            characteristicFormat: "String"
        )
    }

    private static func getMessageCharacteristic() -> Characteristic {
        return Characteristic(
            uuid: DEVICE_INFORMATION_MESSAGE_CHARACTERISTIC_UUID,
            property: .writeWithoutResponse,
            value: nil,
            permission: .writeable,
            userDescription: "Message",
            characteristicFormat: "String"
        )
    }

    static func getDeviceBrightnessService() -> CBMutableService {
        var characteristics = [Characteristic]()

        // Create the Brightness Value characteristics
        characteristics.append(getBrightnessCharacteristic())

        // Create the Device Brightness Service
        let service = createService(
            uuid: DEVICE_BRIGHTNESS_SERVICE_UUID,
            primary: true,
            name: "Device Brightness Service",
            characteristics: characteristics
        )

        return service
    }

    private static func getBrightnessCharacteristic() -> Characteristic {
        return Characteristic(
            uuid: DEVICE_BRIGHTNESS_VALUE_CHARACTERISTIC_UUID,
            property: [.read, .notify],
            value: nil,
            permission: .readable,
            userDescription: "Brightness Value",
            characteristicFormat: "Float"
        )
    }
}

struct Characteristic {
    var uuid: String
    var property: CBCharacteristicProperties
    var value: Any?
    var permission: CBAttributePermissions
    var userDescription: String
    var characteristicFormat: String
}

extension Services {
    fileprivate static func createService(
        uuid: String,
        primary: Bool,
        name: String,
        characteristics: [Characteristic]
    ) -> CBMutableService {
        let service = CBMutableService(type: CBUUID.init(string: uuid), primary: true)
        service.characteristics = [CBMutableCharacteristic]()

        for characteristic in characteristics {
            var value: Data? = nil

            if characteristic.value == nil {
                value = nil
            } else if let text = characteristic.value as? String {
                value = text.data(using: .utf8)
            } else if let number = characteristic.value as? Float {
                value = Data(from: number)
            }

            let serviceCharacteristic = CBMutableCharacteristic(
                type: CBUUID.init(string: characteristic.uuid),
                properties: characteristic.property,
                value: value,
                permissions: characteristic.permission
            )
            // The descriptors are nil until they are set, so neither of these is added.
            serviceCharacteristic.descriptors?.append(
                CBMutableDescriptor(
                    type: CBUUID.init(string: CBUUIDCharacteristicUserDescriptionString),
                    value: characteristic.userDescription
                )
            )
            serviceCharacteristic.descriptors?.append(
                CBMutableDescriptor(
                    type: CBUUID.init(string: CBUUIDCharacteristicFormatString),
                    value: characteristic.characteristicFormat.data(using: .utf8)
                )
            )

            service.characteristics?.append(serviceCharacteristic)
        }

        return service
    }
}

/// The phone that the app runs on.
struct Device {
    static let current = Device()

    let name = ProcessInfo.processInfo.hostName
}

extension Data {
    init<T: BitwiseCopyable>(from value: T) {
        self = Swift.withUnsafeBytes(of: value) { Data($0) }
    }

    /// The number in the bytes; nil if their count differs from the number's size.
    func to<T: BitwiseCopyable>(type: T.Type) -> T? {
        guard count == MemoryLayout<T>.size else { return nil }
        return self.withUnsafeBytes { $0.loadUnaligned(as: type) }
    }
}

extension CBCharacteristic {
    /// The characteristic's description from its server, or its UUID if there is none.
    func getUserDescription() -> String {
        let description = descriptors?.first { $0.uuid.uuidString == CBUUIDCharacteristicUserDescriptionString }
        return description?.value as? String ?? uuid.uuidString
    }
}
