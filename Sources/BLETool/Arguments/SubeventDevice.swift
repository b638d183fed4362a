import BLEProfiles
import BluetoothTypes

/// A device that listens to a subevent, as an argument: `SUBEVENT:ADDRESS`.
struct SubeventDevice: Hashable, Sendable {
    let subevent: UInt8
    let address: DeviceAddress

    /// Reads a subevent, 0 to 127, a colon, and an address. An address whose two highest bits are set is a static
    /// random one, others are public (Vol 6, Part B, 1.3).
    init(argument text: String) throws(ArgumentProblem) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let subevent = UInt8(parts[0]), subevent <= 127,
            case .address(let value) = try Target(argument: String(parts[1]))
        else {
            throw ArgumentProblem(
                "\"\(terminalSafe(text))\" is no device in a subevent: it is SUBEVENT:ADDRESS, with a subevent of 0 to 127"
            )
        }
        self.subevent = subevent
        address = DeviceAddress(value, isRandom: value >> 46 == 0b11)
    }
}
