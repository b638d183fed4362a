import BLEGATT
import BluetoothTypes
import ConformanceFolder
import Foundation
import Testing

/// The file of GATT exchanges: databases, and cases that follow the SIG's test purposes.
struct ConformanceFile: Decodable {
    let databases: [String: Database]
    let cases: [Case]

    struct Database: Decodable {
        let services: [Service]
    }

    struct Service: Decodable {
        let start: String
        let end: String
        let uuid: String
        let primary: Bool
        let includes: [Include]
        let characteristics: [Characteristic]
    }

    struct Include: Decodable {
        let handle: String
        let includedStart: String
    }

    struct Characteristic: Decodable {
        let declarationHandle: String
        let uuid: String
        let propertiesRaw: UInt8
        let permissions: [String]
        let valueHex: String
        let descriptors: [Descriptor]
    }

    struct Descriptor: Decodable {
        let handle: String
        let uuid: String
        let permissions: [String]
        let valueHex: String
    }

    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        let name: String
        let iutRole: String
        let database: String?
        let iutMtu: Int
        let initPduCount: Int?
        let autoElevateSecurity: Bool?
        let operation: Operation?
        let pdus: [PDU]

        var testDescription: String { name }
    }

    struct Operation: Decodable, Sendable {
        let op: String
        let uuid: String?
        let handle: String?
        let handles: [String]?
        let start: String?
        let end: String?
        let valueHex: String?
        let expectedValueHex: String?
        let expectedAttError: String?
    }

    struct PDU: Decodable, Sendable {
        let direction: String?
        let hex: String?
        let action: String?

        var bytes: [UInt8] { hex.flatMap { [UInt8](hexadecimal: $0) } ?? [] }
        var isToTester: Bool { direction == "from_iut" }
    }

    /// Whether the tests of the exchanges run.
    static var isExpected: Bool { ConformanceFolder.isExpected("gatt.json") }

    /// Reads the file.
    static func read() throws -> ConformanceFile {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(
            ConformanceFile.self,
            from: Data(contentsOf: ConformanceFolder.location(of: "gatt.json"))
        )
    }

    /// The file, nil if it cannot be read.
    static let shared = try? read()

    static var serverCases: [Case] { shared?.cases.filter { $0.iutRole == "server" } ?? [] }
    static var clientCases: [Case] { shared?.cases.filter { $0.iutRole == "client" } ?? [] }
}

extension AttributeHandle {
    init(conformance text: String) {
        self.init(UInt16(text.dropFirst(2), radix: 16) ?? 0)
    }
}

extension ConformanceFile.Database {
    /// The services with the handles, permissions and values that the file gives.
    var definitions: [ServiceDefinition] {
        services.map { service in
            ServiceDefinition(
                uuid: uuid(service.uuid),
                isPrimary: service.primary,
                handle: AttributeHandle(conformance: service.start),
                endHandle: AttributeHandle(conformance: service.end),
                includes: service.includes.map { .handle(AttributeHandle(conformance: $0.includedStart)) },
                characteristics: service.characteristics.map { characteristic in
                    CharacteristicDefinition(
                        uuid: uuid(characteristic.uuid),
                        handle: AttributeHandle(conformance: characteristic.declarationHandle),
                        properties: CharacteristicProperties(rawValue: characteristic.propertiesRaw),
                        permissions: permissions(characteristic.permissions),
                        value: .stored([UInt8](hexadecimal: characteristic.valueHex) ?? []),
                        generatesDescriptors: false,
                        descriptors: characteristic.descriptors.map { descriptor in
                            DescriptorDefinition(
                                uuid: uuid(descriptor.uuid),
                                handle: AttributeHandle(conformance: descriptor.handle),
                                value: .stored([UInt8](hexadecimal: descriptor.valueHex) ?? []),
                                permissions: permissions(descriptor.permissions)
                            )
                        }
                    )
                }
            )
        }
    }

    /// The file writes all UUIDs with 128 bits; a server has those over the base UUID with 16.
    private func uuid(_ text: String) -> BluetoothUUID {
        BluetoothUUID(text)?.attributeForm ?? BluetoothUUID(0 as UInt16)
    }

    private func permissions(_ names: [String]) -> AttributePermissions {
        names.reduce(into: []) { permissions, name in
            switch name {
            case "read": permissions.insert(.read)
            case "write": permissions.insert(.write)
            case "read_encrypt": permissions.insert(.readEncrypted)
            case "write_encrypt": permissions.insert(.writeEncrypted)
            default: break
            }
        }
    }
}
