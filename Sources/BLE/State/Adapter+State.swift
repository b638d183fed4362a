import BLEHCITransport
import BLEKeyStore
import BluetoothTypes

extension Adapter {
    /// Where a host saves its persistent state: its bonds, its identity, and the state that managers of Core
    /// Bluetooth's API restore.
    ///
    /// Each controller has a file there, named by its public address, or by its notation if it has none. The file holds
    /// keys: only its owner can read it, and only one host uses it at a time.
    public enum StateLocation: Hashable, Sendable {
        /// The first directory that the environment gives: `$BLE_STATE_DIR`, `$STATE_DIRECTORY`, which systemd sets,
        /// `$XDG_STATE_HOME/swift-ble`, `~/.local/state/swift-ble`. A virtual adapter saves nothing.
        case automatic
        /// A directory, which is created if it does not exist; also for virtual adapters.
        case directory(String)
        /// Nothing is saved.
        case nowhere
    }

    /// Returns the store of the bonds of a host on a controller; nil if nothing is saved.
    ///
    /// - Parameter automaticDirectory: the directory of ``StateLocation/automatic``; nil if there is none.
    static func bondStore(
        of specification: AdapterSpecification,
        _ configuration: Configuration,
        automaticDirectory: @autoclosure () -> String? = StateDirectory.resolve()
    ) -> BondFileStore? {
        let directory: String?
        let variable: String?
        switch (configuration.stateLocation, specification) {
        case (.nowhere, _), (.automatic, .virtual): return nil
        case (.automatic, _): (directory, variable) = (automaticDirectory(), "BLE_STATE_DIR")
        case (.directory(let path), _): (directory, variable) = (path, nil)
        }
        let logger = configuration.logger
        let warn = configuration.warn ?? { logger.warning("\($0)") }
        return BondFileStore(isStrict: configuration.requiresState, directoryVariable: variable) { publicAddress in
            await .open(adapter: publicAddress.map { "\($0)" } ?? "\(specification)", in: directory) {
                warn(StateFileError.text($0, namingDirectoryWith: variable))
            }
        } warn: {
            warn($0)
        }
    }
}
