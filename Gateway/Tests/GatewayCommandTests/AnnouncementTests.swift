import BLE
import Foundation
import FoundationXML
import Testing

@testable import Gateway

struct AnnouncementTests {
    /// Runs the command with a state directory whose address file has this content.
    private func announce(_ content: String?) throws -> String {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        if let content { try Data(content.utf8).write(to: directory.appendingPathComponent("gateway-address")) }
        let command = try Announcement.parse(["--state-dir", directory.path])
        return try command.serviceFile()
    }

    private func isWellFormed(_ text: String) -> Bool {
        XMLParser(data: Data(text.utf8)).parse()
    }

    @Test func serviceFileHasTheGatewaysAddressWithoutColons() throws {
        let file = try announce("C0:DE:00:00:00:0A\n")
        #expect(file.contains("<txt-record>mac=c0de0000000a</txt-record>"))
        #expect(file.contains("<port>6053</port>"))
        #expect(file.contains("<txt-record>api_encryption=Noise_NNpsk0_25519_ChaChaPoly_SHA256</txt-record>"))
        #expect(isWellFormed(file))
    }

    @Test func textOfTheConfigurationIsEscaped() throws {
        var settings = GatewaySettings(stateDirectory: "/state")
        settings.friendlyName = "Hall & <Kitchen> ]]>"
        settings.isEncrypted = false
        settings.port = 7000
        let file = Announcement.serviceFile(settings, address: "C0:DE:00:00:00:0A")
        #expect(file.contains("friendly_name=Hall &amp; &lt;Kitchen&gt; ]]&gt;</txt-record>"))
        #expect(file.contains("<port>7000</port>"))
        #expect(!file.contains("api_encryption"))
        #expect(isWellFormed(file))
    }

    @Test(arguments: [nil, "", "nonsense"])
    func gatewayWithoutAddressIsNotAnnounced(content: String?) {
        #expect(throws: StateError.self) { try announce(content) }
    }

    @Test(arguments: [(EACCES, true), (EPERM, true), (ENOENT, false), (EIO, false)] as [(Int32, Bool)])
    func directoryOfAnotherUserIsNamed(number: Int32, isRefused: Bool) {
        let text = "/state: this user cannot use the directory; run the command as the user of the service"
        let expected = isRefused ? text : nil
        #expect(StateError.refusal("/state", number)?.description == expected)
        let advice = StateError.failed("it cannot be read", "/state", number).advice
        #expect(advice.hasPrefix("run the command as the user of the service, or name") == isRefused)
        #expect(advice.hasSuffix("name a directory that this user can write to with --state-dir"))
    }

    @Test(arguments: [ENOSPC, EDQUOT])
    func adviceOnAFullDiskIsToFreeSpace(number: Int32) {
        let error = StateError.failed("the key cannot be written", "/state", number)
        #expect(error.advice == "free some space there, or name another directory with --state-dir")
    }

    @Test func gatewayWithoutPortIsNotAnnounced() {
        var settings = GatewaySettings(stateDirectory: "/state")
        settings.port = 0
        #expect(throws: SettingsError.self) { try Announcement.checkPort(of: settings) }
        settings.port = 1
        settings.servesAPI = false
        #expect(throws: SettingsError.self) { try Announcement.checkPort(of: settings) }
        settings.servesAPI = true
        #expect(throws: Never.self) { try Announcement.checkPort(of: settings) }
    }

    @Test func shellsProposeTheAdaptersOfTheKernel() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        #expect(SettingsOptions.adapterCandidates(in: folder.path) == ["virtual"])
        for name in ["hci10", "hci2", "hci2:64", "rfkill0"] {
            try FileManager.default.createDirectory(
                at: folder.appendingPathComponent(name),
                withIntermediateDirectories: true
            )
        }
        #expect(SettingsOptions.adapterCandidates(in: folder.path) == ["hci2", "hci10", "virtual"])
    }
}
