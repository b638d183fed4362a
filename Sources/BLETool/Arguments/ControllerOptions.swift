import ArgumentParser
import BLE
import BLEProfiles
import BluetoothTypes

/// The kind of controllers that `ble controller` serves.
struct ControllerOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Maximum length of ACL packets: 27 to 65535 bytes.", valueName: "bytes"))
    var aclLength: UInt16?

    @Option(help: ArgumentHelp("Maximum number of ACL packets that a controller holds.", valueName: "count"))
    var aclPackets: UInt8?

    @Option(help: ArgumentHelp("Maximum number of links of a controller: 1 to 3584 (default: 64).", valueName: "count"))
    var links: Int?

    @Option(
        help: ArgumentHelp(
            "Distance from each controller to the next one; it weakens signals (default: 0).",
            valueName: "metres"
        )
    )
    var distance: Double?

    @Flag(help: "Forward packets at once, without the time that they take on a radio.")
    var noPacing = false

    @Option(help: ArgumentHelp("Make random events the same each time.", valueName: "number"))
    var seed: UInt64?

    func validate() throws {
        if let aclLength, aclLength < 27 { throw ValidationError("--acl-length is 27 to 65535 bytes") }
        if aclPackets == 0 { throw ValidationError("--acl-packets is 1 at least") }
        if let links, !(1...3584).contains(links) { throw ValidationError("--links is 1 to 3584") }
        if let distance, !(0...1e6).contains(distance) {
            throw ValidationError("--distance is 0 to 1000000 metres")
        }
    }

    /// Reads the public address of a controller.
    static func publicAddress(_ text: String) throws(ArgumentProblem) -> DeviceAddress {
        guard let address = DeviceAddress(text, isRandom: false), address.value != 0, address.value != 0xFFFF_FFFF_FFFF
        else {
            throw ArgumentProblem("\"\(terminalSafe(text))\" is not a device address, as in 02:00:00:00:00:01")
        }
        return address
    }

    func apply(to configuration: inout ControllerServer.Configuration) {
        configuration.aclDataLength = aclLength
        configuration.aclPacketCount = aclPackets
        configuration.linkCount = links
        configuration.pacesPackets = !noPacing
        configuration.spacingInMetres = distance ?? 0
        configuration.seed = seed
    }
}
