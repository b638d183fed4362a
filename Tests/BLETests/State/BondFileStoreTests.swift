import BLEGATT
import BLEKeyStore
import BLESMP
import BluetoothHost
import BluetoothTypes
import Foundation
import Testing

@testable import BLE

@Suite("Bonds in the state directory")
struct BondFileStoreTests {
    private let state = StateFixture()

    /// An identity section.
    private let identity =
        #""identity":{"staticAddress":"C0:00:00:00:00:01","resolvingKey":"00000000000000000000000000000001"}"#

    @Test("All stored state is loaded unchanged")
    func storedStateIsLoadedUnchanged() async {
        let bonds = state.bonds()
        #expect(await bonds.load(for: state.controller) == HostSecurityState())
        #expect(await bonds.saveAndWait(.sample))
        await bonds.close()
        let warnings = Warnings()
        #expect(await state.load(warnings) == .sample)
        #expect(warnings.all == [])
    }

    @Test("The file is named by the controller's public address, or by its adapter without one")
    func fileIsNamedByThePublicAddressOrTheAdapter() async throws {
        for (address, name) in [(state.controller, "00-1A-7D-DA-71-13.json"), (nil, "hci0.json")] {
            let bonds = state.bonds()
            _ = await bonds.load(for: address)
            #expect(await bonds.saveAndWait(.sample))
            await bonds.close()
            #expect(try StateFile(directory: state.directory, name: name).read() != nil)
        }
    }

    @Test("The file has the documented form")
    func fileHasTheDocumentedForm() async throws {
        let bonds = state.bonds()
        _ = await bonds.load(for: state.controller)
        #expect(await bonds.saveAndWait(.sample))
        await bonds.close()
        let contents = try #require(try state.file.read()).data
        let written = try JSONSerialization.jsonObject(with: contents) as? NSDictionary
        let sample = Data(HostSecurityState.sampleText.utf8)
        let documented = try JSONSerialization.jsonObject(with: sample) as? NSDictionary
        #expect(written == documented)
    }

    @Test(
        "A damaged record is skipped, others are loaded, and the old file is kept under another name",
        arguments: [
            ("{}", "bonds[1]: addressType is missing"),
            ("7", "bonds[1]: this is of another kind than it should be"),
            (#"{"address":"F0:00:00:00:00:02","addressType":"secret"}"#, "an address is public or random"),
            (#"{"address":"F0:00","addressType":"random"}"#, "an address has six pairs of hexadecimal digits"),
            (
                #"{"address":"F0:00:00:00:00:02","addressType":"random","identityResolvingKey":"12"}"#,
                "bonds[1].identityResolvingKey: this is not 32 hexadecimal digits"
            ),
            (
                #"{"address":"F0:00:00:00:00:02","addressType":"random","identityResolvingKey":null}"#,
                "identityResolvingKey is missing"
            ),
            (
                #"{"address":"F0:00:00:00:00:02","addressType":"random","identityResolvingKey":""#
                    + String(repeating: "0", count: 32) + #""}"#,
                "a key of zeros is none"
            ),
            (
                #"{"address":"F0:00:00:00:00:02","addressType":"random","centralKey":{"value":""#
                    + String(repeating: "1", count: 32)
                    + #"","authenticated":true,"secureConnections":true,"keySize":17}}"#,
                "bonds[1].centralKey.keySize: a key has 7 to 16 bytes"
            ),
            (
                #"{"address":"F0:00:00:00:00:02","addressType":"random","centralKey":{"value":""#
                    + String(repeating: "1", count: 32)
                    + #"","authenticated":true,"secureConnections":true,"keySize":7}}"#,
                "the key has more bytes than its size"
            ),
            (
                #"{"address":"F0:00:00:00:00:01","addressType":"random"}"#,
                "there is another bond with F0:00:00:00:00:01"
            ),
        ]
    )
    func damagedRecordIsSkippedAndTheOldFileIsKept(record: String, problem: String) async throws {
        let good = (1...3).map { #"{"address":"F0:00:00:00:00:0\#($0)","addressType":"random"}"# }
        let text = #"{"format":1,"later":[1],\#(identity),"bonds":[\#(good[0]),\#(record),\#(good[2])]}"#
        try state.file.replace(with: Data(text.utf8))
        let warnings = Warnings()
        let security = await state.load(warnings)
        #expect(security.bonds.map { "\($0.bond.identity)" } == ["F0:00:00:00:00:01", "F0:00:00:00:00:03"])
        let copy = state.file.path + ".damaged-1"
        #expect(warnings.all.count == 1)
        #expect(warnings.all.first?.contains(problem) == true, "\(warnings.all)")
        #expect(warnings.all.first?.hasSuffix(copy) == true)
        #expect(try Data(contentsOf: URL(fileURLWithPath: copy)) == Data(text.utf8))
        // The next host finds no damage, and the other files are still there.
        #expect(await state.load(warnings) == security)
        #expect(warnings.all.count == 1)
        #expect(String(decoding: try #require(try state.file.read()).data, as: UTF8.self).contains("later"))
    }

    @Test("A damaged identity is replaced, and the bonds are kept")
    func damagedIdentityIsReplacedAndTheBondsAreKept() async throws {
        let bond = #"{"address":"F0:00:00:00:00:01","addressType":"random"}"#
        let identity = #"{"staticAddress":"40:00:00:00:00:01","resolvingKey":"00000000000000000000000000000001"}"#
        try state.file.replace(with: Data(#"{"format":1,"identity":\#(identity),"bonds":[\#(bond)]}"#.utf8))
        let warnings = Warnings()
        let security = await state.load(warnings)
        #expect(security.identity == nil)
        #expect(security.bonds.count == 1)
        #expect(warnings.all.first?.contains("identity.staticAddress: this is no random static address") == true)
    }

    @Test("Fields of a later version are ignored")
    func fieldsOfALaterVersionAreIgnored() async throws {
        let bond = #"{"address":"F0:00:00:00:00:01","addressType":"random","colour":"red","server":{"mood":1}}"#
        try state.file.replace(with: Data(#"{"format":1,\#(identity),"bonds":[\#(bond)]}"#.utf8))
        let warnings = Warnings()
        let security = await state.load(warnings)
        #expect(security.bonds.map { "\($0.bond.identity)" } == ["F0:00:00:00:00:01"])
        #expect(security.bonds.first?.serverState == ServerSession.PersistentState())
        #expect(warnings.all == [])
    }

    // MARK: Adapters

    @Test("An adapter locks its state directory until it is closed; a virtual one stores nothing by default")
    func adapterLocksItsStateDirectoryUntilItIsClosed() async throws {
        var configuration = Adapter.Configuration()
        let unasked = try await Adapter.open(.virtual(name: state.directory), configuration: configuration)
        #expect(unasked.store.path == nil)
        await unasked.close()

        configuration.stateLocation = .directory(state.directory)
        let adapter = try await Adapter.open(.virtual(name: state.directory), configuration: configuration)
        let address = try #require(try await adapter.information.publicAddress)
        let host = HostStateStore("\(address)", in: state.directory)
        #expect(host.name == "\(address)")
        #expect(adapter.store.path == host.file.path)
        await #expect(throws: StateFileError.inUse(host.file.path, process: getpid())) {
            try await host.change(warn: recordIssue) { $0 = .sample }
        }
        await adapter.close()
        try await host.change(warn: recordIssue) { $0 = .sample }
        #expect(try host.read { Issue.record("\($0)") } == HostSecurityState.sample.withoutCaches)
        #expect(try HostStateStore.all(in: state.directory).map(\.name) == ["\(address)"])
    }

    @Test("Errors advise the variable only if it can name the directory", arguments: [true, false])
    func errorsAdviseTheVariableOnlyOfAnAutomaticDirectory(isAutomatic: Bool) async throws {
        try state.file.replace(with: Data("{}".utf8))
        try #require(chmod(state.directory, 0o770) == 0)
        let warnings = Warnings()
        var configuration = Adapter.Configuration()
        configuration.stateLocation = isAutomatic ? .automatic : .directory(state.directory)
        configuration.warn = { warnings.add($0) }
        let adapter = AdapterSpecification.hci(index: 0, channel: .user)
        let store = Adapter.bondStore(of: adapter, configuration, automaticDirectory: state.directory)
        let bonds = try #require(store)
        _ = await bonds.load(for: state.controller)
        await bonds.close()
        let problem = try #require(bonds.problem)
        let advice = isAutomatic ? "another directory with BLE_STATE_DIR" : "another directory"
        #expect(problem.hasSuffix("`chmod go-w \(state.directory)`, or name \(advice): nothing is saved"))
        #expect(warnings.all == [problem])
    }

    // MARK: Export

    @Test("Importing an old export does not decrease sign counters")
    func importKeepsHigherSignCounters() throws {
        func record(peer: UInt32, own: UInt32, ownKey: UInt128 = 2) -> BondRecord {
            var bond = Bond(identity: DeviceAddress(0xF000_0000_0003, isRandom: true))
            bond.peerSigningKey = SigningKey(value: 1, isAuthenticated: true, nextCounter: peer)
            bond.ownSigningKey = SigningKey(value: ownKey, isAuthenticated: true, nextCounter: own)
            var record = BondRecord(bond: bond)
            record.isPrivileged = true
            return record
        }
        let old = BondExport(host: "hci0", security: HostSecurityState(bonds: [record(peer: 5, own: 16)]))
        var current = HostSecurityState(bonds: [record(peer: 90, own: 160)])
        try old.add(to: &current, takesIdentity: true)
        #expect(current.bonds == [record(peer: 90, own: 160)])
        var older = HostSecurityState(bonds: [record(peer: 3, own: 0)])
        try old.add(to: &older, takesIdentity: true)
        #expect(older.bonds == [record(peer: 5, own: 16)])
        // Counters of other keys do not matter for these.
        var other = HostSecurityState(bonds: [record(peer: 90, own: 160, ownKey: 7)])
        try old.add(to: &other, takesIdentity: true)
        #expect(other.bonds == [record(peer: 90, own: 16)])
    }

    @Test("An export is imported unchanged")
    func exportIsImportedUnchanged() throws {
        let export = BondExport(host: "hci0", security: .sample)
        let again = try BondExport(reading: export.octets)
        #expect(again.host == "hci0")
        #expect(again.security == HostSecurityState.sample.withoutCaches)
        var other = HostSecurityState()
        try again.add(to: &other, takesIdentity: true)
        #expect(other == HostSecurityState.sample.withoutCaches)
    }

    @Test("Imported bonds replace those with the same peers, and an identity is replaced only on request")
    func importedBondsReplaceThoseWithTheSamePeers() throws {
        var other = HostSecurityState(identity: .other)
        var known = HostSecurityState.sample.bonds[0]
        known.bond.centralKey = nil
        let third = BondRecord(bond: Bond(identity: DeviceAddress(0xF000_0000_0003, isRandom: true)))
        other.bonds = [known, third]
        let export = BondExport(host: "hci0", security: .sample)
        let before = other
        #expect(throws: BondExportError.self) { try export.add(to: &other, takesIdentity: true) }
        #expect(other == before)
        try export.add(to: &other, takesIdentity: false)
        #expect(other.identity == .other)
        #expect(other.bonds == [third] + HostSecurityState.sample.bonds)
    }

    @Test(
        "An invalid document is refused with a line that names the place",
        arguments: [
            ("", "this is no JSON"),
            ("[]", "this is of another kind than it should be"),
            ("{}", "format is missing"),
            (#"{"format":2,"host":"a","bonds":[]}"#, "format: this version reads format 1, not 2"),
            (#"{"format":1,"host":"a"}"#, "bonds is missing"),
            (
                #"{"format":1,"host":"a","bonds":[{"address":"F0:00:00:00:00:01","addressType":"odd"}]}"#,
                "bonds[0].addressType: an address is public or random"
            ),
            (
                #"{"format":1,"host":"a","bonds":[{"address":"F0:00:00:00:00:01","addressType":"random"},"#
                    + #"{"address":"F0:00:00:00:00:01","addressType":"random"}]}"#,
                "there are two bonds with F0:00:00:00:00:01 (random)"
            ),
        ]
    )
    func invalidExportIsRefusedWithTheNameOfThePlace(text: String, problem: String) {
        let error = #expect(throws: BondExportError.self) { try BondExport(reading: Array(text.utf8)) }
        #expect(error?.description == problem)
    }
}

extension HostIdentity {
    fileprivate static let other = HostIdentity(
        staticAddress: DeviceAddress(0xC111_1111_1111, isRandom: true),
        resolvingKey: 7
    )
}

extension HostSecurityState {
    var withoutCaches: HostSecurityState {
        HostSecurityState(
            identity: identity,
            bonds: bonds.map { record in
                var record = record
                record.clientCache = nil
                return record
            }
        )
    }

    /// A sample with every field.
    static var sample: HostSecurityState {
        var first = Bond(identity: DeviceAddress(0x0011_2233_4455, isRandom: false))
        first.centralKey = LongTermKey(
            value: 0x0011_2233_4455_6677,
            encryptedDiversifier: 0xFEDC,
            randomNumber: 0x8123_4567_89AB_CDEF,
            strength: KeyStrength(isAuthenticated: false, isSecureConnections: false, keySize: 8)
        )
        first.peerSigningKey = SigningKey(value: 1, isAuthenticated: false, nextCounter: .max)
        var second = Bond(identity: DeviceAddress(0xF000_0000_0002, isRandom: true))
        let key = LongTermKey(
            value: .max,
            strength: KeyStrength(isAuthenticated: true, isSecureConnections: true, keySize: 16)
        )
        second.centralKey = key
        second.peripheralKey = key
        second.peerIOCapability = .noInputNoOutput
        second.identityResolvingKey = 0xFFEE_DDCC_BBAA_9988_7766_5544_3322_1100
        second.ownSigningKey = SigningKey(value: 1 << 127, isAuthenticated: true, nextCounter: 5)
        var record = BondRecord(bond: second)
        record.isPrivileged = true
        record.serverState = ServerSession.PersistentState(
            configurations: [
                .init(handle: 3, configuration: .notification),
                .init(handle: 0x0102, configuration: .indication, characteristic: "2A05"),
            ],
            clientFeatures: 1,
            knownDatabaseHash: 0xABCD,
            isServiceChangedOwed: true
        )
        record.advertisingKey = EncryptedDataKeyMaterial(decoding: (0..<24).map { $0 })
        record.clientCache = DatabaseCache(
            hash: 0x0102,
            services: [
                DiscoveredService(
                    uuid: "180F",
                    isPrimary: true,
                    handle: 1,
                    endHandle: 5,
                    includedServices: [
                        IncludedService(uuid: "180A", declarationHandle: 2, handle: 6, endHandle: 9)
                    ],
                    characteristics: [
                        DiscoveredCharacteristic(
                            uuid: "12345678-1234-5678-1234-56789ABCDEF0",
                            handle: 3,
                            valueHandle: 4,
                            endHandle: 5,
                            properties: [.read, .notify],
                            descriptors: [DiscoveredDescriptor(uuid: "2902", handle: 5)]
                        )
                    ]
                )
            ]
        )
        return HostSecurityState(
            identity: HostIdentity(
                staticAddress: DeviceAddress(0xC012_3456_789A, isRandom: true),
                resolvingKey: 0x0000_0000_0000_0000_0000_0000_0000_00AB
            ),
            bonds: [BondRecord(bond: first), record]
        )
    }

    fileprivate static let sampleText = """
        {
          "format": 1,
          "identity": {"staticAddress": "C0:12:34:56:78:9A", "resolvingKey": "000000000000000000000000000000ab"},
          "bonds": [
            {
              "address": "00:11:22:33:44:55",
              "addressType": "public",
              "privileged": false,
              "centralKey": {
                "value": "00000000000000000011223344556677",
                "encryptedDiversifier": "fedc",
                "randomNumber": "8123456789abcdef",
                "authenticated": false,
                "secureConnections": false,
                "keySize": 8
              },
              "peerSigningKey": {
                "value": "00000000000000000000000000000001", "authenticated": false, "nextCounter": 4294967295
              }
            },
            {
              "address": "F0:00:00:00:00:02",
              "addressType": "random",
              "privileged": true,
              "centralKey": {
                "value": "ffffffffffffffffffffffffffffffff",
                "authenticated": true, "secureConnections": true, "keySize": 16
              },
              "peripheralKey": {
                "value": "ffffffffffffffffffffffffffffffff",
                "authenticated": true, "secureConnections": true, "keySize": 16
              },
              "peerIOCapability": 3,
              "identityResolvingKey": "ffeeddccbbaa99887766554433221100",
              "advertisingKey": "000102030405060708090a0b0c0d0e0f1011121314151617",
              "ownSigningKey": {
                "value": "80000000000000000000000000000000", "authenticated": true, "nextCounter": 5
              },
              "server": {
                "configurations": [{"handle": 3, "value": 1}, {"handle": 258, "value": 2, "characteristic": "2A05"}],
                "clientFeatures": 1,
                "knownDatabaseHash": "0000000000000000000000000000abcd", "isServiceChangedOwed": true
              }
            }
          ]
        }
        """
}
