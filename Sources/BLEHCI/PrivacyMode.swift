/// Whether a peer on the resolving list may use its identity address (Vol 6, Part B, 4.7).
public enum PrivacyMode: UInt8, Sendable {
    /// Only resolvable private addresses are accepted.
    case network = 0x00
    /// The identity address is accepted too.
    case device = 0x01
}
