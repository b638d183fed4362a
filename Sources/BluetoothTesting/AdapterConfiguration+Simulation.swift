import BLE

extension Adapter.Configuration {
    /// Checks that the configuration asks for no saved state, because simulated devices and replays save none.
    func requireNoSavedState() throws(BLEError) {
        if case .directory = stateLocation {
            throw .invalidArgument("a simulated device saves no state: leave stateLocation out")
        }
        if requiresState {
            throw .invalidArgument("a simulated device saves no state: leave requiresState out")
        }
    }
}
