/// Makes what the managers that apps create work with.
enum EngineFactory {
    /// The host for a central manager; nil where this process has none, which managers show as `unsupported`.
    ///
    /// - Parameter restoreIdentifier: names what an earlier process may have left; nil where nothing is to be restored.
    static func makeCentralEngine(restoreIdentifier: String?) -> (any CentralEngine)? {
        nil
    }

    /// The host for a peripheral manager; as ``makeCentralEngine(restoreIdentifier:)``.
    static func makePeripheralEngine(restoreIdentifier: String?) -> (any PeripheralEngine)? {
        nil
    }
}
