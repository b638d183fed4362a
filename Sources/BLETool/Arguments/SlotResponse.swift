import BLEProfiles
import BluetoothTypes

/// A response to periodic advertising, as an argument: `SLOT:HEX`.
struct SlotResponse: Hashable, Sendable {
    let slot: UInt8
    let data: [UInt8]

    /// Reads a response slot, 0 to 254, a colon, and hexadecimal digits, possibly none.
    init(argument text: String) throws(ArgumentProblem) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let slot = UInt8(parts[0]), slot <= 254 else {
            throw ArgumentProblem("\"\(terminalSafe(text))\" is no response: it is SLOT:HEX, with a slot of 0 to 254")
        }
        self.slot = slot
        data = try [UInt8](argument: String(parts[1]))
    }
}
