import BluetoothTypes
import HCITransport
import KeyStore

extension Adapter {
    /// Where a host keeps what outlives it: its bonds, who it is, and what managers of Core Bluetooth's API remember.
    ///
    /// Each controller has a file there, named by its public address, or by its notation where it has none. The file holds
    /// keys: only its owner can read it, and it is used by one host at a time.
    public enum StateLocation: Hashable, Sendable {
        /// The first directory that the environment gives: `$BLE_STATE_DIR`, `$STATE_DIRECTORY`, which systemd sets,
        /// `$XDG_STATE_HOME/swift-ble`, `~/.local/state/swift-ble`. A virtual adapter keeps nothing.
        case automatic
        /// A directory, which is made where it is not there; for virtual adapters too.
        case directory(String)
        /// Nothing is kept over restarts.
        case nowhere
    }

    /// What keeps the bonds of a host on a controller; nil where nothing is kept.
    static func keptBonds(of specification: AdapterSpecification, _ configuration: Configuration) -> KeptBonds? {
        let directory: String?
        switch (configuration.stateLocation, specification) {
        case (.nowhere, _), (.automatic, .virtual): return nil
        case (.automatic, _): directory = StateDirectory.resolve()
        case (.directory(let path), _): directory = path
        }
        let logger = configuration.logger
        let warn = configuration.warn ?? { logger.warning("\($0)") }
        return KeptBonds(isStrict: configuration.requiresState) { publicAddress in
            await .open(adapter: publicAddress.map { "\($0)" } ?? "\(specification)", in: directory, warn: warn)
        } warn: {
            warn($0)
        }
    }
}
