import BluetoothTypes

extension AttributeHandle {
    /// Reads 1 to 65535, decimal or after `0x` hexadecimal.
    package init(argument text: some StringProtocol) throws(ArgumentProblem) {
        let isHexadecimal = text.hasPrefix("0x") || text.hasPrefix("0X")
        let digits = text.dropFirst(isHexadecimal ? 2 : 0)
        guard digits.allSatisfy({ $0.isASCII && $0.isHexDigit }),
            let value = UInt16(digits, radix: isHexadecimal ? 16 : 10), value > 0
        else {
            throw ArgumentProblem(
                "\"\(terminalSafe(String(text)))\" is not a handle: use 1 to 65535, or 0x0001 to 0xFFFF"
            )
        }
        self.init(value)
    }
}
