import ArgumentParser
import BLE
import BLEKeyStore

/// The location of saved bonds and identities.
struct StateOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The directory for bonds and this host's identity (default: BLE_STATE_DIR, STATE_DIRECTORY, "
                + "XDG_STATE_HOME/swift-ble or ~/.local/state/swift-ble).",
            valueName: "dir"
        ),
        completion: .directory
    )
    var stateDir: String?

    func validate() throws {
        if stateDir?.isEmpty == true { throw ValidationError("--state-dir is empty; name a directory") }
    }

    var location: Adapter.StateLocation { stateDir.map { .directory($0) } ?? .automatic }

    /// Returns the state directory, for commands that read it without a host.
    func directory() throws(ToolError) -> String {
        guard let directory = stateDir ?? StateDirectory.resolve() else { throw .noStateDirectory }
        return directory
    }
}
