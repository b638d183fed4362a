/// The files that follow from the tables, by their paths from the root of the package.
struct GeneratedFiles: Sendable {
    /// The end of the name of every generated file. A file of that name which does not follow from the tables is stray.
    static let suffix = ".generated.swift"
    /// The directories that are searched for generated files.
    static let directories = ["Sources", "Tests"]

    let texts: [String: String]

    init(_ tables: Tables) {
        let hci = "Sources/BLEHCI/Generated/"
        var texts = [
            hci + "Event" + Self.suffix: EventEnumeration.file(tables),
            hci + "HCIOpcode+Name" + Self.suffix: CodeSwitches.commandNames(tables),
            hci + "Event+Name" + Self.suffix: CodeSwitches.eventNames(tables),
            hci + "SupportedCommands+Position" + Self.suffix: CodeSwitches.supportedCommandPositions(tables),
            "Sources/BLEDissection/Generated/PacketLayouts" + Self.suffix: PacketLayouts.file(tables),
            "Tests/BLEHCITests/TypedCodes" + Self.suffix: CodeSwitches.typedCodes(tables),
        ]
        for table in tables.tables {
            let name = table.file.hasSuffix(".hci") ? String(table.file.dropLast(4)) : table.file
            texts[hci + name + Self.suffix] = PacketTypes.file(table)
        }
        self.texts = texts
    }
}
