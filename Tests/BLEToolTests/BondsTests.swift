import ArgumentParser
import BLE
import BLEKeyStore
import BLEProfiles
import BLESMP
import BluetoothHost
import BluetoothTypes
import Foundation
import Testing

@testable import BLETool

@Suite("ble bonds")
final class BondsTests {
    private let directory = FileManager.default.temporaryDirectory.path + "/ble-bonds-\(UUID().uuidString)"
    private let host = "00:1A:7D:DA:71:13"

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    private var security: HostSecurityState {
        var first = Bond(identity: DeviceAddress(0xF012_3456_789A, isRandom: true))
        let strength = KeyStrength(isAuthenticated: true, isSecureConnections: true, keySize: 16)
        first.centralKey = LongTermKey(value: 5, strength: strength)
        first.peripheralKey = first.centralKey
        first.identityResolvingKey = 6
        var second = Bond(identity: DeviceAddress(0x0012_3456_789A, isRandom: false))
        second.peripheralKey = LongTermKey(
            value: 7,
            strength: KeyStrength(isAuthenticated: false, isSecureConnections: false, keySize: 7)
        )
        second.ownSigningKey = SigningKey(value: 8, isAuthenticated: false)
        second.peerSigningKey = SigningKey(value: 9, isAuthenticated: false)
        let third = Bond(identity: DeviceAddress(0x0012_3456_789B, isRandom: false))
        return HostSecurityState(
            identity: HostIdentity(staticAddress: DeviceAddress(0xC000_0000_0001, isRandom: true), resolvingKey: 4),
            bonds: [first, second, third].map { BondRecord(bond: $0) }
        )
    }

    private let recordIssue: @Sendable (String) -> Void = { Issue.record("\($0)") }

    private func saved(_ name: String? = nil) throws -> HostSecurityState {
        try HostStateStore(name ?? host, in: directory).read { Issue.record("\($0)") }
    }

    private func fill(_ name: String? = nil) async throws {
        try await HostStateStore(name ?? host, in: directory).change(warn: recordIssue) { $0 = security }
    }

    /// Runs a command with arguments, like the command line.
    private func run(_ arguments: String...) async throws {
        var command = try Bonds.parseAsRoot(arguments + ["--state-dir", directory])
        guard var asynchronous = command as? any AsyncParsableCommand else { return try command.run() }
        try await asynchronous.run()
    }

    private func problem(_ arguments: String...) async -> String? {
        do {
            var command = try Bonds.parseAsRoot(arguments + ["--state-dir", directory])
            guard var asynchronous = command as? any AsyncParsableCommand else {
                try command.run()
                return nil
            }
            try await asynchronous.run()
            return nil
        } catch {
            return Bonds.exitCode(for: error) == .validationFailure ? Bonds.message(for: error) : "\(error)"
        }
    }

    @Test("A bond is a row of a table or a line of JSON, without its keys")
    func bondIsARowOrALineOfJSONWithoutItsKeys() {
        let rows = security.bonds.map { BondRow(host: host, record: $0) }
        #expect(
            rows.map(\.cells) == [
                [
                    host, "F0:12:34:56:78:9A", "random", "Secure Connections, authenticated",
                    "central, peripheral, resolve",
                ],
                [host, "00:12:34:56:78:9A", "public", "legacy, unauthenticated, 7 bytes", "peripheral, sign, verify"],
                [host, "00:12:34:56:78:9B", "public", "-", ""],
            ]
        )
        #expect(
            rows.map(\.json.description) == [
                #"{"event":"bond","host":"00:1A:7D:DA:71:13","address":"F0:12:34:56:78:9A","addressType":"random","#
                    + #""secureConnections":true,"authenticated":true,"keySize":16,"#
                    + #""keys":["central","peripheral","resolve"],"cachedServices":null}"#,
                #"{"event":"bond","host":"00:1A:7D:DA:71:13","address":"00:12:34:56:78:9A","addressType":"public","#
                    + #""secureConnections":false,"authenticated":false,"keySize":7,"#
                    + #""keys":["peripheral","sign","verify"],"cachedServices":null}"#,
                #"{"event":"bond","host":"00:1A:7D:DA:71:13","address":"00:12:34:56:78:9B","addressType":"public","#
                    + #""secureConnections":null,"authenticated":null,"keySize":null,"keys":[],"cachedServices":null}"#,
            ]
        )
    }

    @Test("`ble bonds` without a subcommand lists the bonds")
    func bondsAreListedWithoutASubcommand() throws {
        #expect(try Bonds.parseAsRoot([]) is Bonds.List)
        #expect(try Bonds.parseAsRoot(["--json"]) is Bonds.List)
    }

    @Test("A removed bond is gone, and the others remain")
    func removedBondIsGoneAndTheOthersRemain() async throws {
        try await fill()
        try await fill("hci1")
        try await run("remove", "f0:12:34:56:78:9a", "--host", host)
        #expect(try saved().bonds == Array(security.bonds.dropFirst()))
        #expect(try saved("hci1") == security)
        try await run("remove", "00:12:34:56:78:9A")
        #expect(try saved().bonds == [security.bonds[2]])
        #expect(try saved("hci1").bonds == [security.bonds[0], security.bonds[2]])
        #expect(
            await problem("remove", "00:12:34:56:78:9A")
                == "there is no bond with 00:12:34:56:78:9A in \(directory); `ble bonds` lists the bonds"
        )
    }

    @Test("An export can be imported elsewhere, and only its owner can read it")
    func exportCanBeImportedElsewhereAndIsReadableByItsOwnerOnly() async throws {
        try await fill()
        let path = directory + "/export"
        try await run("export", path)
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        #expect(await problem("export", path) == "\(path): the file exists already")
        try FileManager.default.removeItem(atPath: HostStateStore(host, in: directory).file.path)
        try await run("import", path)
        #expect(try saved() == security)
        try await run("import", path, "--host", "hci1")
        #expect(try saved("hci1") == security)
        #expect(
            await problem("export")
                == "there are bonds of several hosts; name one with --host: \(host), hci1"
        )
    }

    @Test("An invalid file is not imported at all")
    func invalidFileIsNotImportedAtAll() async throws {
        try await fill()
        let path = directory + "/export"
        var octets = BondExport(host: host, security: security).octets
        let place = try #require(octets.firstRange(of: Array(#""random""#.utf8)))
        octets.replaceSubrange(place, with: Array(#""chance""#.utf8))
        try Data(octets).write(to: URL(fileURLWithPath: path))
        let before = try saved()
        #expect(await problem("import", path) == "\(path): bonds[0].addressType: an address is public or random")
        try Data("{".utf8).write(to: URL(fileURLWithPath: path))
        #expect(await problem("import", path) == "\(path): this is no JSON")
        #expect(await problem("import", path + "-none") == "\(path)-none: No such file or directory")
        #expect(try saved() == before)
    }

    @Test("Another host's bonds are imported only with the option for bonds only")
    func bondsOfAnotherHostAreImportedOnlyWithTheOption() async throws {
        try await HostStateStore(host, in: directory).change(warn: recordIssue) {
            $0.identity = HostIdentity(staticAddress: DeviceAddress(0xC000_0000_0002, isRandom: true), resolvingKey: 3)
        }
        let path = directory + "/export"
        try Data(BondExport(host: host, security: security).octets).write(to: URL(fileURLWithPath: path))
        #expect(await problem("import", path)?.hasSuffix("--bonds-only imports the bonds without it") == true)
        #expect(try saved().bonds == [])
        try await run("import", path, "--bonds-only")
        #expect(try saved().bonds == security.bonds)
        #expect(try saved().identity?.resolvingKey == 3)
    }

    @Test("Importing bonds without an identity gives the host a new one")
    func importWithoutAnIdentityGivesTheHostANewOne() async throws {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let path = directory + "/export"
        try Data(BondExport(host: host, security: security).octets).write(to: URL(fileURLWithPath: path))
        try await run("import", path, "--bonds-only")
        let first = try saved()
        #expect(first.bonds == security.bonds)
        #expect(first.identity != nil && first.identity != security.identity)
        try await run("remove", "F0:12:34:56:78:9A")
        #expect(try saved().identity == first.identity)
    }

    @Test("Bonds without an identity get one when they are changed")
    func changedBondsWithoutAnIdentityGetOne() async throws {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let bond = #"{"address":"F0:12:34:56:78:9A","addressType":"random"}"#
        let other = #"{"address":"F0:12:34:56:78:9B","addressType":"random"}"#
        let file = HostStateStore(host, in: directory).file
        try file.replace(with: Data(#"{"format":1,"bonds":[\#(bond),\#(other)]}"#.utf8))
        try await run("remove", "F0:12:34:56:78:9A")
        #expect(try saved().bonds.count == 1 && saved().identity != nil)
    }

    @Test("The bonds of a running host can be listed and exported, but not changed")
    func bondsOfARunningHostCanBeListedAndNotChanged() async throws {
        try await fill("56:42:4C:45:00:01")
        var configuration = Adapter.Configuration()
        configuration.stateLocation = .directory(directory)
        let adapter = try await Adapter.open(.virtual(name: directory), configuration: configuration)
        let file = HostStateStore("56:42:4C:45:00:01", in: directory).file
        #expect(adapter.store.path == file.path)
        try await run("list")
        try await run("export", directory + "/export")
        let inUse = "\(file.path) is in use by process \(getpid())"
        #expect(await problem("remove", "F0:12:34:56:78:9A")?.hasPrefix(inUse) == true)
        #expect(await problem("import", directory + "/export")?.hasPrefix(inUse) == true)
        await adapter.close()
        try await run("remove", "F0:12:34:56:78:9A")
        #expect(try saved("56:42:4C:45:00:01").bonds == Array(security.bonds.dropFirst()))
    }

    @Test("Impossible requests are refused in one line")
    func impossibleRequestIsRefusedInOneLine() async throws {
        #expect(
            await problem("remove", "F0:12")
                == "\"F0:12\" is not an address: it has six pairs of digits, as in F0:12:34:56:78:9A"
        )
        #expect(await problem("export") == "there are no bonds in \(directory)")
        let error = #expect(throws: (any Error).self) { try Bonds.parseAsRoot(["list", "--state-dir", ""]) }
        #expect(error.map { Bonds.message(for: $0) } == "--state-dir is empty; name a directory")
    }

    @Test("An unusable file is named, and does not hide the others")
    func unusableFileIsNamedAndDoesNotHideTheOthers() async throws {
        try await fill()
        let bad = directory + "/hci9.json"
        try Data("{".utf8).write(to: URL(fileURLWithPath: bad))
        // What can be read is listed and changed. The error gives the command a status other than 0.
        #expect(await problem("list") == "\(bad) is damaged")
        #expect(await problem("remove", "F0:12:34:56:78:9A") == "\(bad) is damaged")
        #expect(try saved().bonds == Array(security.bonds.dropFirst()))
        #expect(await problem("list", "--host", "hci9") == "\(bad) is damaged")
        let missing = "there is no bond with F0:12:34:56:78:9A in \(directory); `ble bonds` lists the bonds"
        #expect(await problem("remove", "F0:12:34:56:78:9A") == missing)
        // An export without that host would be taken for a whole one.
        #expect(await problem("export", directory + "/export") == "\(bad) is damaged")
        #expect(!FileManager.default.fileExists(atPath: directory + "/export"))
        try await run("export", directory + "/export", "--host", host)
        // Reading the file leaves it in place.
        #expect(try Data(contentsOf: URL(fileURLWithPath: bad)) == Data("{".utf8))
    }

    @Test("Each command that uses a controller accepts the state directory", arguments: ["scan", "info"])
    func eachCommandWithAControllerAcceptsTheStateDirectory(command: String) throws {
        let parsed = try BLECommand.parseAsRoot([command, "--state-dir", "/tmp/state"])
        let options = (parsed as? Scan)?.options ?? (parsed as? Info)?.options
        #expect(options?.state.location == .directory("/tmp/state"))
    }

    @Test("Errors that an option of the tool helps with name it")
    func errorsNameTheOptionsThatHelp() {
        let refusal = BLEError.security(.pairing(.endedByPeer(.pairingNotSupported)))
        #expect(ToolError.description(of: refusal).contains("remove it there too"))
        #expect(ToolError.description(of: refusal).contains("--replace-bond"))
        let own = BLEError.security(.pairing(.ended(.pairingNotSupported)))
        #expect(ToolError.description(of: own) == "\(own)")
        let link = StateFileError.symbolicLink("/state/hci0.json")
        #expect(ToolError.description(of: link).hasSuffix("or name another directory with --state-dir"))
        let chosen = BLEError.stateUnavailable("free space, or name another directory: nothing is saved")
        let advice = "name another directory with --state-dir"
        #expect(ToolError.description(of: chosen) == "free space, or \(advice): nothing is saved")
        let automatic = BLEError.stateUnavailable("name another directory with BLE_STATE_DIR: nothing is saved")
        #expect(ToolError.description(of: automatic) == "\(advice) or BLE_STATE_DIR: nothing is saved")
        #expect("\(ToolError.noSubrating("not supported"))".contains("--subrating"))
        #expect("\(ToolError.closedAtStart("tcp:[::1]:6402"))".contains("other programs"))
    }
}
