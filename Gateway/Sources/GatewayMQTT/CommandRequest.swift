import BLE
import BluetoothSensors
import Foundation
import GatewayCore

/// A command as a JSON object: `{"id": "1", "command": "read", "address": "C0:DE:00:00:00:01", …}`.
struct CommandRequest {
    /// The members of the object. Others are ignored.
    private struct Object: Decodable {
        var id: String?
        var command: String?
        var address: String?
        var addressType: String?
        var service: String?
        var characteristic: String?
        var value: String?
        var response: Bool?
        var timeout: Double?
    }

    /// The greatest length of an identifier, in bytes.
    static let identifierLimit = 128
    /// The range of time-outs, in seconds.
    static let timeouts = 0.1...120.0

    /// The identifier, which the result has as well; nil if the request has none that is valid.
    private(set) var identifier: String?
    /// The name of the command; nil if the request has none that is known.
    private(set) var name: String?
    /// The address; nil if the request has none that is valid.
    private(set) var address: DeviceAddress?
    /// The command, or the reason why there is none.
    private(set) var command: Result<DeviceCommand, DeviceCommandError>

    /// Decodes a message.
    init(_ reception: MQTTReception) {
        command = .failure(DeviceCommandError(.invalid, "the request is not a JSON object with the documented members"))
        guard let payload = reception.payload else {
            let text = "a request has at most \(MQTTReception.sizeLimit) bytes"
            command = .failure(DeviceCommandError(.tooLarge, text))
            return
        }
        guard let object = try? JSONDecoder().decode(Object.self, from: Data(payload)) else { return }
        do throws(DeviceCommandError) {
            identifier = try Self.identifier(object.id)
            guard !reception.isRetained else {
                throw DeviceCommandError(.retained, "a retained request is not performed; publish it without retain")
            }
            let (address, isRandom) = try Self.address(object)
            self.address = address
            let action = try Self.action(object)
            name = object.command
            let timeout = object.timeout ?? 30
            guard Self.timeouts.contains(timeout) else {
                throw Self.invalid("timeout", "\(timeout)", "use 0.1 to 120 seconds")
            }
            command = .success(
                DeviceCommand(
                    action,
                    address: address.value,
                    isRandom: isRandom,
                    timeout: .milliseconds(Int(timeout * 1000))
                )
            )
        } catch {
            command = .failure(error)
        }
    }

    private static func invalid(_ member: String, _ value: String?, _ advice: String) -> DeviceCommandError {
        guard let value else { return DeviceCommandError(.invalid, "\"\(member)\" is missing; \(advice)") }
        let shown = value.count > 64 ? "\(value.prefix(64))…" : value
        return DeviceCommandError(.invalid, "\"\(member)\": \"\(shown)\" is not valid; \(advice)")
    }

    private static func identifier(_ text: String?) throws(DeviceCommandError) -> String {
        guard let text, (1...identifierLimit).contains(text.utf8.count) else {
            throw invalid("id", text, "use a text of 1 to \(identifierLimit) bytes")
        }
        return text
    }

    private static func address(_ object: Object) throws(DeviceCommandError) -> (DeviceAddress, isRandom: Bool?) {
        let isRandom: Bool?
        switch object.addressType {
        case nil: isRandom = nil
        case "random": isRandom = true
        case "public": isRandom = false
        default: throw invalid("addressType", object.addressType, "use public or random")
        }
        guard let text = object.address, let address = DeviceAddress(text, isRandom: isRandom ?? false) else {
            throw invalid("address", object.address, "use six pairs of hexadecimal digits, joined by colons")
        }
        return (address, isRandom)
    }

    private static func action(_ object: Object) throws(DeviceCommandError) -> DeviceCommand.Action {
        switch object.command {
        case "connect": .connect
        case "disconnect": .disconnect
        case "services": .services
        case "pair": .pair
        case "unpair": .unpair
        case "read": .read(try path(object))
        case "write": .write(try path(object), try value(object.value), withResponse: object.response ?? true)
        case "subscribe": .subscribe(try path(object))
        case "unsubscribe": .unsubscribe(try path(object))
        default:
            throw invalid(
                "command",
                object.command,
                "use connect, disconnect, services, pair, unpair, read, write, subscribe or unsubscribe"
            )
        }
    }

    private static func path(_ object: Object) throws(DeviceCommandError) -> DeviceCommand.Path {
        let advice = "use a UUID of 4 or 8 digits, or of 36 characters"
        var service: BluetoothUUID?
        if let text = object.service {
            guard let uuid = BluetoothUUID(text) else { throw invalid("service", text, advice) }
            service = uuid
        }
        guard let characteristic = object.characteristic.flatMap(BluetoothUUID.init) else {
            throw invalid("characteristic", object.characteristic, advice)
        }
        return DeviceCommand.Path(service: service, characteristic: characteristic)
    }

    private static func value(_ text: String?) throws(DeviceCommandError) -> [UInt8] {
        let advice = "use pairs of hexadecimal digits, at most 512"
        guard let text, text.utf8.count <= 1024, text.utf8.count.isMultiple(of: 2) else {
            throw invalid("value", text, advice)
        }
        var bytes: [UInt8] = []
        var high: UInt8?
        for character in text.utf8 {
            guard let digit = Character(Unicode.Scalar(character)).hexDigitValue, character < 0x80 else {
                throw invalid("value", text, advice)
            }
            if let first = high {
                bytes.append(first << 4 | UInt8(digit))
                high = nil
            } else {
                high = UInt8(digit)
            }
        }
        return bytes
    }
}
