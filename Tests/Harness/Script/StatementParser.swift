extension Statement {
    /// Parses a line that is neither empty nor about the script itself.
    ///
    /// - Parameter line: the line. Statements with a text argument use everything after the first word unchanged.
    init(parsing line: Substring) throws(Complaint) {
        let verb = line.prefix { $0 != " " && $0 != "\t" }
        let text = String(line.dropFirst(verb.count)).trimmingBlanks
        switch verb {
        case "input": self = .input(text)
        case "output": self = .output(try Statement.required(text, after: verb))
        case "errors": self = .errors(try Statement.required(text, after: verb))
        default:
            var words = try LineWords(line).words[...]
            words.removeFirst()
            self = try Statement.parse(verb, &words)
            guard words.isEmpty else { throw Complaint("\(verb) does not take \"\(words.joined(separator: " "))\"") }
        }
    }

    private static func required(_ text: String, after verb: Substring) throws(Complaint) -> String {
        guard !text.isEmpty else { throw Complaint("\(verb) needs a text") }
        return text
    }

    private static func parse(_ verb: Substring, _ words: inout ArraySlice<String>) throws(Complaint) -> Statement {
        switch verb {
        case "controller": .controller(try Controller(parsing: &words))
        case "define": try definition(&words)
        case "within": .patience(try Duration(parsing: words.next("a time")))
        case "fragments": try fragments(&words)
        case "completions": .completions(try words.next("on or off").isOn)
        case "link": .link(try UInt16(number: words.next("a connection handle"), upTo: 0x0EFF))
        case "on", "once": .rule(try Rule(parsing: &words, isOnce: verb == "once"))
        case "await": try awaiting(&words)
        case "reply": .reply(try words.complete())
        case "status": .status(try words.octet())
        case "completed": .completed(Int(try UInt16(number: words.next("a number of packets"), upTo: 0xFFFF)))
        case "connect": .connect(try Connection(parsing: &words))
        case "disconnect": .disconnect(reason: words.isEmpty ? 0x13 : try words.octet())
        case "nothing": .nothing(try Duration(parsing: words.next("a time")))
        case "pause": .pause(try Duration(parsing: words.next("a time")))
        case "close": .close
        case "accept": .accept
        case "exit": .exit(Int32(try UInt16(number: words.next("a status"), upTo: 255)))
        default: try transfer(verb, &words)
        }
    }

    private static func definition(_ words: inout ArraySlice<String>) throws(Complaint) -> Statement {
        let name = try words.next("a name")[...].checkedName
        guard words.popFirst() == "=" else { throw Complaint("a definition reads: define NAME = BYTES") }
        return .define(name, try words.complete())
    }

    private static func fragments(_ words: inout ArraySlice<String>) throws(Complaint) -> Statement {
        let word = try words.next("a length, or whole")
        if word == "whole" { return .fragments(nil) }
        let length = try UInt16(number: word, upTo: 0xFFFF)
        guard length > 0 else { throw Complaint("a fragment has one byte or more") }
        return .fragments(Int(length))
    }

    private static func awaiting(_ words: inout ArraySlice<String>) throws(Complaint) -> Statement {
        let time = try words.takeTime()
        let opcode = try UInt16(command: words.next("a command"))
        return .await(opcode, try words.pattern(), within: time)
    }

    /// Parses a statement that sends to the host or expects a message from it.
    private static func transfer(_ verb: Substring, _ words: inout ArraySlice<String>) throws(Complaint) -> Statement {
        switch verb {
        case "send": return .send(.packet, try words.complete())
        case "event>":
            let (code, subevent) = try EventNames.code(of: words.next("an event"))
            return .send(.event(code, subevent: subevent), try words.complete())
        case "acl>":
            let boundary = try boundary(words.next("start, continue or another flag"))
            return .send(.acl(boundary: boundary), try words.complete())
        case "att>", "sig>", "smp>", "l2cap>":
            return .send(.channel(try channel(verb.dropLast(), &words)), try words.complete())
        case "expect", "command<", "att<", "sig<", "smp<", "l2cap<":
            let time = try words.takeTime()
            let source: Source =
                switch verb {
                case "expect": .packet
                case "command<": .command(try UInt16(command: words.next("a command")))
                default: .channel(try channel(verb.dropLast(), &words))
                }
            return .expect(source, try words.pattern(), within: time)
        default:
            throw Complaint("\"\(verb)\" is not known; see Docs/Harness.md for the statements")
        }
    }

    /// The Packet Boundary flag for data from a controller (Vol 4, Part E, 5.4.2).
    private static func boundary(_ word: String) throws(Complaint) -> UInt8 {
        switch word {
        case "start": 0b10
        case "continue": 0b01
        case "0", "1", "2", "3": UInt8(word) ?? 0
        default: throw Complaint("\"\(word)\" is no boundary flag; use start, continue or 0 to 3")
        }
    }

    /// The channel for a name, or for a number after `l2cap`.
    static func channel(_ name: Substring, _ words: inout ArraySlice<String>) throws(Complaint) -> UInt16 {
        switch name {
        case "att": return 0x0004
        case "sig": return 0x0005
        case "smp": return 0x0006
        case "l2cap": return try UInt16(number: words.next("a channel"), upTo: 0xFFFF)
        default: throw Complaint("\"\(name)\" is no channel; use att, sig, smp or l2cap with a number")
        }
    }
}

extension Rule {
    /// Parses `command NAME [PATTERN] reply|status|ignore ...`, or the same for a channel.
    init(parsing words: inout ArraySlice<String>, isOnce: Bool) throws(Complaint) {
        let kind = try words.next("command, att, sig, smp or l2cap")
        if kind == "command" {
            source = .command(try UInt16(command: words.next("a command")))
        } else {
            source = .channel(try Statement.channel(kind[...], &words))
        }
        guard let position = words.firstIndex(where: { ["reply", "status", "ignore"].contains($0) }) else {
            throw Complaint("a rule ends with reply BYTES, status BYTE or ignore")
        }
        let written = try Octets(parsing: words[..<position])
        pattern = written.items.isEmpty ? Octets(items: [.rest(nil)]) : written
        let verb = words[position]
        words = words[words.index(after: position)...]
        switch (verb, source) {
        case ("reply", _): action = .reply(try words.complete())
        case ("status", .command): action = .status(try words.octet())
        case ("status", _): throw Complaint("only a command has a status")
        default: action = .ignore
        }
        self.isOnce = isOnce
    }
}

extension Connection {
    /// Parses the properties of a connection: the host's role, the peer's address and its type.
    init(parsing words: inout ArraySlice<String>) throws(Complaint) {
        while let word = words.popFirst() {
            switch word {
            case "peripheral": role = .peripheral
            case "central": role = .central
            case "public": isPeerRandom = false
            case "random": isPeerRandom = true
            default: peer = try Octets.address(word)
            }
        }
    }
}

extension ArraySlice<String> {
    /// Removes and returns the next word, which must exist.
    mutating func next(_ what: String) throws(Complaint) -> String {
        guard let word = popFirst() else { throw Complaint("\(what) is missing") }
        return word
    }

    /// Removes and parses all remaining words, as bytes that can be sent.
    fileprivate mutating func complete() throws(Complaint) -> Octets {
        let octets = try pattern()
        guard octets.isComplete else { throw Complaint("a packet to send has no wildcards") }
        return octets
    }

    /// Removes and parses all remaining words, as a pattern.
    fileprivate mutating func pattern() throws(Complaint) -> Octets {
        let octets = try Octets(parsing: self)
        removeAll()
        return octets
    }

    /// Removes and parses one byte.
    fileprivate mutating func octet() throws(Complaint) -> UInt8 {
        guard case .octet(let value, 0xFF) = try Octets(parsing: prefix(1)).items.first, count == 1 else {
            throw Complaint("one byte is required here, such as 0C")
        }
        removeAll()
        return value
    }

    /// Removes and returns the time of `within TIME` at the end.
    fileprivate mutating func takeTime() throws(Complaint) -> Duration? {
        guard count >= 2, self[index(endIndex, offsetBy: -2)] == "within", let word = last else { return nil }
        removeLast(2)
        return try Duration(parsing: word)
    }
}

extension UInt16 {
    init(number text: String, upTo limit: UInt64) throws(Complaint) {
        guard let number = UInt64(number: text), number <= limit else {
            throw Complaint("\"\(text)\" is no number up to \(limit)")
        }
        self = UInt16(truncatingIfNeeded: number)
    }
}

extension String {
    fileprivate var isOn: Bool {
        get throws(Complaint) {
            switch self {
            case "on": true
            case "off": false
            default: throw Complaint("\"\(self)\" is neither on nor off")
            }
        }
    }

    var trimmingBlanks: String {
        let start = drop { $0 == " " || $0 == "\t" }
        let end = start.reversed().prefix { $0 == " " || $0 == "\t" }.count
        return String(start.dropLast(end))
    }
}
