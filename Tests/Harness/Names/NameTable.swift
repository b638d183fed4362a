/// Numbers and their names in the specification, with underscores for blanks.
struct NameTable: Sendable {
    private let names: [Int: String]
    private let numbers: [String: Int]

    /// - Parameter text: lines of a hexadecimal number, a blank and a name.
    init(_ text: String) {
        var names: [Int: String] = [:]
        var numbers: [String: Int] = [:]
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 1)
            guard parts.count == 2, let number = Int(parts[0], radix: 16) else { continue }
            names[number] = String(parts[1])
            numbers[parts[1].lowercased()] = number
        }
        self.names = names
        self.numbers = numbers
    }

    func name(of number: Int) -> String? { names[number] }

    /// The number of a name, in any case.
    func number(of name: String) -> Int? { numbers[name.lowercased()] }
}
