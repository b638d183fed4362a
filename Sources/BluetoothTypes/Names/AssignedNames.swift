/// Names of assigned numbers: lines of four hexadecimal digits, a space and the name, in ascending order.
///
/// The tables are one string each, which costs nothing to compile and nothing to load; they are read when first asked.
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
    /// The name that the Bluetooth SIG gives the service, characteristic, descriptor or declaration, or the member that a
    /// UUID is assigned to; nil where it is none of these.
    public var name: String? {
        shortValue.flatMap { AssignedNames.uuids[$0] ?? AssignedNames.members[$0] }
    }
}

extension CompanyIdentifier {
    /// The company's name, where the number is assigned.
    public var name: String? {
        AssignedNames.companies[rawValue]
    }
}

extension Appearance {
    /// The name of the subcategory, or of the category where the subcategory has none; nil for a category that is not
    /// assigned.
    public var name: String? {
        AssignedNames.appearances[rawValue] ?? AssignedNames.appearances[category << 6]
    }
}
