import ArgumentParser
import BLE
import BLEKeyStore
import BLEProfiles
import BluetoothHost

/// The options that all commands of `ble bonds` share.
struct BondOptions: ParsableArguments {
    @OptionGroup var state: StateOptions

    @Option(
        help: ArgumentHelp(
            "Only this host: its controller's public address, or its adapter if the controller has none.",
            valueName: "host"
        )
    )
    var host: String?

    @Flag(help: "Print lines of JSON.")
    var json = false

    /// Returns the selected hosts.
    func hosts() throws -> [KeptHost] {
        let directory = try state.directory()
        return try host.map { [KeptHost($0, in: directory)] } ?? KeptHost.all(in: directory)
    }

    /// Returns the selected hosts with readable bonds, and prints why the others cannot be read.
    func readable() throws -> [(host: KeptHost, security: KeptSecurity)] {
        var readable: [(KeptHost, KeptSecurity)] = []
        var failure: StateFileError?
        for host in try hosts() {
            do throws(StateFileError) {
                readable.append((host, try host.read(warn: Output.complain)))
            } catch {
                if let failure { Output.complain("\(failure)") }
                failure = error
            }
        }
        guard let failure else { return readable }
        if readable.isEmpty { throw failure }
        Output.complain("\(failure)")
        return readable
    }

    func tell(_ event: JSON, _ text: String) throws {
        if json { try Output.standard.json(event) } else { try Output.standard.line(text) }
    }
}
