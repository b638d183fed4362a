import BLEProfiles

/// Names a channel's service, as the user has typed it: in decimal digits, or in hexadecimal ones after `0x`.
struct PSM: Hashable, Sendable {
    let value: UInt16

    init(argument text: String) throws(ArgumentProblem) {
        let number = text.hasPrefix("0x") ? UInt16(text.dropFirst(2), radix: 16) : UInt16(text)
        guard let number, (1...255).contains(number) else {
            throw ArgumentProblem("\"\(terminalSafe(text))\" is not a PSM: it is 1 to 255, as in 128 or 0x80")
        }
        value = number
    }
}
