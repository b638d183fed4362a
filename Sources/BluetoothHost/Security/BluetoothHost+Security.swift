import BluetoothTypes
import SMP

extension BluetoothHost {
    /// The peer of a link has other keys than before, or none.
    func keysChanged(of link: Link) {
        let bond = record(for: link)?.bond
        link.session.security.hasKey = (link.role == .central ? bond?.centralKey : bond?.peripheralKey) != nil
    }
}
