import BluetoothTypes

/// A value in a profile together with its place, read strictly.
struct ProfileReader {
    let value: JSON
    /// As in `services[1].uuid`; empty for the whole.
    let place: String

    func error(_ problem: String) -> ProfileError {
        ProfileError(place: place, problem: problem)
    }

    private func expected(_ what: String) -> ProfileError {
        error("expected \(what), not \(value.kind)")
    }

    /// Returns the members of an object that has no other members than these.
    func members(_ allowed: [String]) throws(ProfileError) -> Members {
        guard case .object(let members) = value else { throw expected("an object") }
        var readers: [String: ProfileReader] = [:]
        for member in members {
            let reader = ProfileReader(
                value: member.value,
                place: place.isEmpty ? member.key : "\(place).\(member.key)"
            )
            guard allowed.contains(member.key) else {
                throw ProfileError(
                    place: terminalSafe(reader.place),
                    problem: "unknown key; known are \(allowed.joined(separator: ", "))"
                )
            }
            guard readers.updateValue(reader, forKey: member.key) == nil else { throw reader.error("given twice") }
        }
        return Members(whole: self, readers: readers)
    }

    /// All members of an object, whatever their keys.
    func entries() throws(ProfileError) -> [(key: String, reader: ProfileReader)] {
        guard case .object(let members) = value else { throw expected("an object") }
        return members.map { ($0.key, ProfileReader(value: $0.value, place: "\(place).\(terminalSafe($0.key))")) }
    }

    func elements() throws(ProfileError) -> [ProfileReader] {
        guard case .array(let elements) = value else { throw expected("an array") }
        return elements.enumerated().map { ProfileReader(value: $1, place: "\(place)[\($0)]") }
    }

    func string() throws(ProfileError) -> String {
        guard case .string(let text) = value else { throw expected("a string") }
        return text
    }

    func bool() throws(ProfileError) -> Bool {
        guard case .bool(let value) = value else { throw expected("true or false") }
        return value
    }

    func integer(in range: ClosedRange<Int>) throws(ProfileError) -> Int {
        guard case .integer(let number) = value else { throw expected("a whole number") }
        guard range.contains(number) else {
            throw error("\(number) is out of range; use \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func number(in range: ClosedRange<Double>) throws(ProfileError) -> Double {
        let number: Double
        switch value {
        case .integer(let value): number = Double(value)
        case .decimal(let value): number = value
        default: throw expected("a number")
        }
        guard range.contains(number) else {
            let bounds = [range.lowerBound, range.upperBound].map { Int(exactly: $0).map { "\($0)" } ?? "\($0)" }
            throw error("\(value) is out of range; use \(bounds[0]) to \(bounds[1])")
        }
        return number
    }

    func uuid() throws(ProfileError) -> BluetoothUUID {
        try reading { (text) throws(ArgumentProblem) in try BluetoothUUID(argument: text) }
    }

    /// A whole number, or its digits in a string, in hexadecimal after `0x`.
    func handle() throws(ProfileError) -> AttributeHandle {
        switch value {
        case .integer: return AttributeHandle(UInt16(try integer(in: 1...0xFFFF)))
        case .string: return try reading { (text) throws(ArgumentProblem) in try AttributeHandle(argument: text) }
        default: throw expected("a handle")
        }
    }

    func bytes() throws(ProfileError) -> [UInt8] {
        try reading { (text) throws(ArgumentProblem) in try [UInt8](argument: text) }
    }

    /// A string that is read as arguments of the command line are.
    private func reading<Value>(
        _ read: (String) throws(ArgumentProblem) -> Value
    ) throws(ProfileError) -> Value {
        let text = try string()
        do throws(ArgumentProblem) {
            return try read(text)
        } catch {
            throw self.error(error.description)
        }
    }

    /// One of the words that stand for the cases of an enumeration.
    func word<Word>(_ type: Word.Type, _ what: String) throws(ProfileError) -> Word
    where Word: RawRepresentable<String> & CaseIterable {
        let text = try string()
        guard let word = Word(rawValue: text) else {
            let all = Word.allCases.map(\.rawValue).joined(separator: ", ")
            throw error("\"\(terminalSafe(text))\" is not \(what); known are \(all)")
        }
        return word
    }

    /// The members of an object whose keys are all known.
    struct Members {
        fileprivate let whole: ProfileReader
        fileprivate let readers: [String: ProfileReader]

        subscript(key: String) -> ProfileReader? { readers[key] }

        func required(_ key: String) throws(ProfileError) -> ProfileReader {
            guard let reader = readers[key] else {
                let place = whole.place
                throw ProfileError(place: place.isEmpty ? key : "\(place).\(key)", problem: "missing")
            }
            return reader
        }
    }
}
