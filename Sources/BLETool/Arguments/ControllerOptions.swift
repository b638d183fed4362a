import ArgumentParser
import BLE

/// What kind of controllers `ble controller` serves.
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

    func apply(to configuration: inout ControllerServer.Configuration) {
        configuration.aclDataLength = aclLength
        configuration.aclPacketCount = aclPackets
        configuration.pacesPackets = !noPacing
        configuration.spacing = distance ?? 0
        configuration.seed = seed
    }
}
