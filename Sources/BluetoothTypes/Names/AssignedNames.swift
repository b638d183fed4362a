/// The names of assigned numbers, from Assigned Numbers of the first half of 2026. A table has lines of four
/// hexadecimal digits, a space and the name, in ascending order.
///
/// A withdrawn number keeps its last name, because devices may still use it.
///
/// Each table is one string, which costs nothing to compile or load. It is parsed on first use.
struct AssignedNames: Sendable {
    private let names: [UInt16: String]

    init(_ table: String) {
        var names: [UInt16: String] = [:]
        for line in table.split(separator: "\n") {
            guard let number = UInt16(line.prefix(4), radix: 16) else { continue }
            names[number] = String(line.dropFirst(5))
        }
        self.names = names
    }

    subscript(number: UInt16) -> String? {
        names[number]
    }

    static let uuids = AssignedNames(uuidTable)
    static let members = AssignedNames(memberTable)
    static let companies = AssignedNames(companyTable)
    static let appearances = AssignedNames(appearanceTable)
}

extension BluetoothUUID {
    /// The name that the Bluetooth SIG assigns to the service, characteristic, descriptor or declaration, or the name
    /// of the member or standards body to which the UUID is assigned. Nil for other UUIDs.
    ///
    /// The names are those of the first half of 2026. The UUIDs from 0xFFF0 to 0xFFF5 have no name: they are
    /// assigned to standards bodies, but many devices use them for services and characteristics of their own.
    public var name: String? {
        shortValue.flatMap { AssignedNames.uuids[$0] ?? AssignedNames.members[$0] }
    }
}

extension CompanyIdentifier {
    /// The company's name; nil if the number was not assigned in the first half of 2026.
    public var name: String? {
        AssignedNames.companies[rawValue]
    }
}

extension Appearance {
    /// The name of the subcategory, or of the category if the subcategory has no name. Nil if the category is not
    /// assigned.
    public var name: String? {
        AssignedNames.appearances[rawValue] ?? AssignedNames.appearances[category << 6]
    }
}
