import ArgumentParser
import BLE
import BluetoothTypes
import Profiles

/// The kind of controllers that `ble controller` serves.
struct ControllerOptions: ParsableArguments {
    @Option(help: ArgumentHelp("How many octets an ACL packet may have: 27 to 65535.", valueName: "octets"))
    var aclLength: UInt16?

    @Option(help: ArgumentHelp("How many ACL packets a controller holds.", valueName: "count"))
    var aclPackets: UInt8?

    @Option(
        help: ArgumentHelp(
            "How far it is from each controller to the next one; signals weaken with it (default: 0).",
            valueName: "metres"
        )
    )
    var distance: Double?

    @Flag(help: "Forward packets at once, instead of taking the time that they would on a radio.")
    var noPacing = false

    @Option(help: ArgumentHelp("Make what happens by chance the same each time.", valueName: "number"))
    var seed: UInt64?

    func validate() throws {
        if let aclLength, aclLength < 27 { throw ValidationError("--acl-length is 27 to 65535 octets") }
        if aclPackets == 0 { throw ValidationError("--acl-packets is 1 at least") }
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
        configuration.pacesPackets = !noPacing
        configuration.spacing = distance ?? 0
        configuration.seed = seed
    }
}
