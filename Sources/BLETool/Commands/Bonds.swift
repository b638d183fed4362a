import ArgumentParser
import BLE
import BLEKeyStore
import BLEProfiles
import BluetoothHost
import BluetoothTypes

struct Bonds: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bonds",
        abstract: "List, remove, export and import the bonds with other devices.",
        discussion: """
            No controller is needed. Listing and exporting work while a host runs. Before bonds are removed or \
            imported, stop the host.
            """,
        subcommands: [List.self, Remove.self, Export.self, Import.self],
        defaultSubcommand: List.self
    )

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(commandName: "list", abstract: "List the bonds, without keys.")

        @OptionGroup var options: BondOptions

        func run() async throws {
            try await options.withReadable { hosts in
                let rows = hosts.flatMap { host, security in
                    security.bonds.map { BondRow(host: host.name, record: $0) }
                }
                if options.json {
                    for row in rows { try Output.standard.json(row.json) }
                } else if !rows.isEmpty {
                    let table = TextTable(header: BondRow.columns, rows: rows.map(\.cells))
                    for line in table.lines() { try Output.standard.line(line) }
                }
                if rows.isEmpty, try hosts.count == options.hosts().count {
                    Output.complain("there are no bonds in \(try options.state.directory())")
                }
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove",
            abstract: "Remove the bond with a device. The devices must pair again.",
            discussion: """
                The device keeps its bond with this host, and may refuse to pair until that is removed too. If it runs \
                `ble serve`, --replace-bond there lets it replace the bond.
                """
        )

        @OptionGroup var options: BondOptions

        @Argument(help: "The device's address, as `ble bonds list` shows it.")
        var address: String

        func validate() throws {
            guard DeviceAddress(address, isRandom: false) == nil else { return }
            throw ValidationError(
                "\"\(terminalSafe(address))\" is not an address: it has six pairs of digits, as in F0:12:34:56:78:9A"
            )
        }

        func run() async throws {
            guard let value = DeviceAddress(address, isRandom: false)?.value else { return }
            try await options.withReadable { hosts in
                var isFound = false
                for (host, security) in hosts where try await remove(value, from: host, security) { isFound = true }
                guard isFound else { throw ToolError.noBond(address, try options.state.directory()) }
            }
        }

        /// - Returns: whether the host had a bond with the address.
        private func remove(
            _ value: UInt64,
            from host: HostStateStore,
            _ security: HostSecurityState
        ) async throws -> Bool {
            let peers = security.bonds.map(\.bond.identity).filter { $0.value == value }
            guard !peers.isEmpty else { return false }
            try await host.change(warn: Output.complainAboutState) { security in
                security.bonds.removeAll { $0.bond.identity.value == value }
            }
            for peer in peers {
                try options.tell(
                    .object(BondRow.members("removed", host.name, peer)),
                    "\(peer) (\(peer.typeName)) was removed from \(terminalSafe(host.name))"
                )
            }
            return true
        }
    }

    struct Export: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "export",
            abstract: "Write a host's bonds and identity, including their keys, as one document."
        )

        @OptionGroup var options: BondOptions

        @Argument(help: "A new file, which only you can read; standard output otherwise.", completion: .file())
        var file: String?

        func run() async throws {
            // An export that lacks a host would be taken for a whole one.
            let hosts = try options.allReadable().filter { $0.security != HostSecurityState() }
            guard let (host, security) = hosts.first else {
                throw ToolError.noBonds(try options.state.directory())
            }
            guard hosts.count == 1 else { throw ToolError.severalHosts(hosts.map(\.host.name)) }
            let octets = BondExport(host: host.name, security: security).octets
            if let file {
                try ExportFile.write(octets, to: file)
                try options.tell(
                    [
                        "event": "exported", "host": .string(host.name), "bonds": .integer(security.bonds.count),
                        "file": .string(file),
                    ],
                    "\(Bonds.count(security.bonds.count)) of \(terminalSafe(host.name)) in \(terminalSafe(file))"
                )
            } else {
                try Output.standard.write(octets)
            }
            Output.complain("the export contains keys: anyone who has them can decrypt and impersonate these devices")
        }
    }

    struct Import: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "import",
            abstract: "Add the bonds of an export: all of them, or none if one is invalid.",
            discussion: "A bond replaces an existing bond with the same device."
        )

        @OptionGroup var options: BondOptions

        @Argument(help: "The file that `ble bonds export` has written, or - for standard input.", completion: .file())
        var file: String

        @Flag(help: "Leave the host's identity as it is.")
        var bondsOnly = false

        func run() async throws {
            let octets = try await File.read(file)
            let export: BondExport
            do throws(BondExportError) {
                export = try BondExport(reading: octets)
            } catch {
                throw FileError(path: file, problem: "\(error)")
            }
            let host = HostStateStore(options.host ?? export.host, in: try options.state.directory())
            try await host.change(warn: Output.complainAboutState) { security in
                do throws(BondExportError) {
                    try export.add(to: &security, takesIdentity: !bondsOnly)
                } catch {
                    throw FileError(path: file, problem: "\(error); --bonds-only imports the bonds without it")
                }
            }
            for record in export.security.bonds where options.json {
                try Output.standard.json(.object(BondRow.members("imported", host.name, record.bond.identity)))
            }
            if !options.json {
                try Output.standard.line("\(Bonds.count(export.security.bonds.count)) for \(terminalSafe(host.name))")
            }
        }
    }

    static func count(_ bonds: Int) -> String { bonds == 1 ? "1 bond" : "\(bonds) bonds" }
}
