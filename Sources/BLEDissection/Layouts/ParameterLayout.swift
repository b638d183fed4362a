/// The layout of a packet's parameters, written as one line of text after the tables of the specification.
///
/// A line has the parameters in order, separated by spaces, each as `Name:type`. A `!` after the type includes the
/// parameter in the summary line of the packet. The types:
/// - `u8 u16 u24 u32 u64`, `i8 i16`: numbers, least significant byte first; `u16*1250us` counts units of time, `i8dBm`
///   power.
/// - `x8 x16 x32 x48 x64`: numbers written in hexadecimal; `u128`: keys and similar numbers.
/// - `handle`: a connection handle. `address`: six bytes. `uuid`: a UUID that fills the rest.
/// - `@name`: an enumeration of one byte, `@@name`: of two; `#name`: flags of one byte, `##name`: of two, `#8name`: of
///   eight.
/// - `bytesN`: N bytes. `rest`: all remaining bytes. `textN`, `text`: UTF-8 up to a zero.
/// - `ad`: AD structures to the end. `ad8`: a length of one byte, then AD structures. `ad8of31`: the same, in a field
///   of 31 bytes after the length.
/// - `data8`: a length of one byte, then that many bytes.
/// - `count`: the number of the groups that follow; `phys`: the same, with one group for each set bit.
/// - `Name{ ... }`: a group, repeated as the last `count` or `phys` says, or to the end without one.
/// - `Name?{ ... }`: parameters that may be absent together.
struct ParameterLayout: Sendable {
    indirect enum Kind: Sendable {
        case unsigned(octets: Int)
        case signed(octets: Int)
        case time(octets: Int, unit: Unit)
        case power
        case hexadecimal(octets: Int)
        case wide
        case handle
        case address
        case uuid
        case enumeration(octets: Int, NamedValues)
        case flags(octets: Int, FlagNames)
        case octets(Int)
        case rest
        case text(Int?)
        case advertisingData(AdvertisingDataLength)
        case countedBytes
        case count
        case phys
        case group(ParameterLayout)
        case optional(ParameterLayout)
    }

    enum AdvertisingDataLength: Sendable {
        case rest
        /// A byte gives the length. If the data field has a fixed size, `room` is that size in bytes.
        case counted(room: Int?)
    }

    struct Parameter: Sendable {
        let name: FieldName
        let kind: Kind
        let isInLine: Bool
    }

    let parameters: [Parameter]

    static let empty = ParameterLayout(parameters: [])

    /// The parameters before the first list; nil if there is no list.
    var beforeLists: ParameterLayout? {
        let index = parameters.firstIndex { if case .group = $0.kind { true } else { false } }
        return index.map { ParameterLayout(parameters: Array(parameters[..<$0])) }
    }

    private init(parameters: [Parameter]) {
        self.parameters = parameters
    }

    /// Parses a line of a layout table. Returns nil if it is not valid.
    init?(parsing text: some StringProtocol) {
        var words = text.split { $0 == " " }.map { String($0) }[...]
        guard let parameters = ParameterLayout.parse(&words, isGroup: false), words.isEmpty else { return nil }
        self.parameters = parameters
    }

    private static func parse(_ words: inout ArraySlice<String>, isGroup: Bool) -> [Parameter]? {
        var parameters: [Parameter] = []
        while let word = words.popFirst() {
            if word == "}" { return isGroup ? parameters : nil }
            if word.hasSuffix("{") {
                guard let inner = parse(&words, isGroup: true) else { return nil }
                let layout = ParameterLayout(parameters: inner)
                let isOptional = word.hasSuffix("?{")
                let name = FieldName(String(word.dropLast(isOptional ? 2 : 1)))
                parameters.append(
                    Parameter(name: name, kind: isOptional ? .optional(layout) : .group(layout), isInLine: true)
                )
                continue
            }
            let parts = word.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { return nil }
            let isInLine = parts[1].hasSuffix("!")
            guard let kind = Kind(parsing: isInLine ? parts[1].dropLast() : parts[1]) else { return nil }
            parameters.append(Parameter(name: FieldName(String(parts[0])), kind: kind, isInLine: isInLine))
        }
        return isGroup ? nil : parameters
    }
}

extension ParameterLayout.Kind {
    fileprivate init?(parsing text: Substring) {
        switch text {
        case "i8dBm": self = .power
        case "u128": self = .wide
        case "handle": self = .handle
        case "address": self = .address
        case "uuid": self = .uuid
        case "rest": self = .rest
        case "text": self = .text(nil)
        case "ad": self = .advertisingData(.rest)
        case "ad8": self = .advertisingData(.counted(room: nil))
        case "ad8of31": self = .advertisingData(.counted(room: 31))
        case "data8": self = .countedBytes
        case "count": self = .count
        case "phys": self = .phys
        default:
            guard let kind = Self.number(text) ?? Self.set(text) ?? Self.sized(text) else { return nil }
            self = kind
        }
    }

    /// Parses `u16`, `i16`, `u16*625us`, `x32`.
    private static func number(_ text: Substring) -> Self? {
        let parts = text.split(separator: "*")
        guard let first = parts.first, let bits = Int(first.dropFirst()), bits.isMultiple(of: 8), bits <= 64 else {
            return nil
        }
        switch (first.first, parts.count) {
        case ("u", 1): return .unsigned(octets: bits / 8)
        case ("i", 1): return .signed(octets: bits / 8)
        case ("x", 1): return .hexadecimal(octets: bits / 8)
        case ("u", 2):
            let factor: Int64 = parts[1].hasSuffix("us") ? 1 : parts[1].hasSuffix("ms") ? 1000 : 1_000_000
            guard let count = Int64(parts[1].prefix { $0.isNumber }) else { return nil }
            return .time(octets: bits / 8, unit: .time(microseconds: count * factor))
        default: return nil
        }
    }

    /// Parses `@role`, `@@result`, `#flags`, `##properties`, `#8features`.
    private static func set(_ text: Substring) -> Self? {
        if text.hasPrefix("@") {
            let octets = text.prefix { $0 == "@" }.count
            return NamedValues.all[String(text.dropFirst(octets))].map { .enumeration(octets: octets, $0) }
        }
        guard text.hasPrefix("#") else { return nil }
        let hashes = text.prefix { $0 == "#" }.count
        let rest = text.dropFirst(hashes)
        if let digit = rest.first?.wholeNumberValue {
            return FlagNames.all[String(rest.dropFirst())].map { .flags(octets: digit, $0) }
        }
        return FlagNames.all[String(rest)].map { .flags(octets: hashes, $0) }
    }

    /// Parses `bytes16`, `text248`.
    private static func sized(_ text: Substring) -> Self? {
        if text.hasPrefix("bytes"), let count = Int(text.dropFirst(5)) { return .octets(count) }
        if text.hasPrefix("text"), let count = Int(text.dropFirst(4)) { return .text(count) }
        return nil
    }
}

/// Layouts by number, from a table of lines: a number in hexadecimal, then the layout.
struct LayoutTable: Sendable {
    private let layouts: [UInt16: ParameterLayout]
    /// The lines that are not valid layouts. A test checks that there are none.
    let problems: [String]

    init(_ table: String) {
        var layouts: [UInt16: ParameterLayout] = [:]
        var problems: [String] = []
        for line in table.split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 1)
            if let number = parts.first.flatMap({ UInt16($0, radix: 16) }), layouts[number] == nil,
                let layout = ParameterLayout(parsing: parts.count > 1 ? parts[1] : "")
            {
                layouts[number] = layout
            } else {
                problems.append(String(line))
            }
        }
        self.layouts = layouts
        self.problems = problems
    }

    subscript(number: UInt16) -> ParameterLayout? { layouts[number] }

    /// The numbers that have a layout.
    var numbers: [UInt16] { layouts.keys.sorted() }
}
