/// The release of swift-ble.
public enum SwiftBLE {
    /// The version, by Semantic Versioning.
    ///
    /// The programs `ble` and `ble-gateway` print it, and their Debian package has it.
    public static let version = "0.1.0"
}
