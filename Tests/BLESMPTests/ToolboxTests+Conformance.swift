import BLECryptography
import BLESMP
import BluetoothTypes
import ConformanceFolder
import Foundation
import Testing

/// Samples with which other stacks check their toolboxes, if they are available.
private struct Samples: Decodable {
    private enum CodingKeys: String, CodingKey {
        case ciphers = "crypto"
        case functions = "smp_functions"
        case specification = "smp_spec_vectors"
    }

    let ciphers: [[String: Field]]
    let functions: [[String: Field]]
    let specification: [[String: Field]]

    static var isExpected: Bool { ConformanceFolder.isExpected("samples.json") }

    /// Reads the file.
    static func read() throws -> Samples {
        try JSONDecoder().decode(Samples.self, from: Data(contentsOf: ConformanceFolder.location(of: "samples.json")))
    }

    /// The samples of the file; none if it cannot be read.
    static let all: [Sample] = {
        guard let samples = try? read() else { return [] }
        return (samples.ciphers + samples.functions + samples.specification).map(Sample.init)
    }()
}

/// A value of a sample.
private enum Field: Decodable {
    case text(String)
    case number(UInt32)
    case flag(Bool)

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let flag = try? container.decode(Bool.self) {
            self = .flag(flag)
        } else if let number = try? container.decode(UInt32.self) {
            self = .number(number)
        } else {
            self = .text(try container.decode(String.self))
        }
    }
}

/// One sample. Its fields are numbers in either byte order, as the sample says.
struct Sample: CustomTestStringConvertible {
    private let fields: [String: Field]
    let function: String

    fileprivate init(fields: [String: Field]) {
        self.fields = fields
        guard case .text(let name)? = fields["fn"] else {
            function = ""
            return
        }
        function = String(name.prefix { $0 != " " })
    }

    var testDescription: String { text("name") ?? function }

    func text(_ name: String) -> String? {
        if case .text(let text)? = fields[name] { text } else { nil }
    }

    /// Returns the bytes of a field in the order in which they are written.
    func octets(_ name: String) throws -> [UInt8] {
        let digits = try #require(text(name))
        return try #require([UInt8](hexadecimal: digits))
    }

    /// Returns the bytes of a field, the most significant first.
    func ordered(_ name: String) throws -> [UInt8] {
        let isReversed = text("byte_order")?.contains("little-endian") ?? function.hasPrefix("csis_")
        return isReversed ? try octets(name).reversed() : try octets(name)
    }

    func number(_ name: String) throws -> UInt128 {
        try ordered(name).reduce(0) { $0 << 8 | UInt128($1) }
    }

    func wide(_ name: String) throws -> UInt256Bytes {
        try #require(UInt256Bytes(leastSignificantFirst: try ordered(name).reversed()))
    }

    func address(_ name: String) throws -> DeviceAddress {
        let isRandom =
            switch fields[name + "t"] {
            case .number(let type): type == 1
            case .text(let type): type == "0x01"
            default: false
            }
        return DeviceAddress(UInt64(truncatingIfNeeded: try number(name)), isRandom: isRandom)
    }

    var isExpectedToMatch: Bool? {
        if case .flag(let isExpected)? = fields["expected_match"] { isExpected } else { nil }
    }

    var counter: UInt32 {
        if case .number(let counter)? = fields["sign_counter"] { counter } else { 0 }
    }
}

@Suite("Samples of other stacks' toolboxes", .enabled(if: Samples.isExpected))
struct ToolboxConformanceTests {
    let functions = SwiftCryptography()
    let toolbox = Toolbox(SwiftCryptography())

    @Test func fileCanBeRead() throws {
        _ = try Samples.read()
    }

    @Test(
        arguments: ["c1", "s1", "ah", "f4", "f5", "f6", "g2", "h6", "h7", "att_sign"]
    )
    func samplesIncludeEachFunction(function: String) {
        #expect(Samples.all.contains { $0.function == function })
    }

    @Test(arguments: Samples.all)
    func toolboxReproducesTheSample(_ sample: Sample) throws {
        switch sample.function {
        case "c1":
            let confirm = toolbox.c1(
                k: try sample.number("k"),
                r: try sample.number("r"),
                preq: try sample.octets("preq").reversed(),
                pres: try sample.octets("pres").reversed(),
                ia: try sample.address("ia"),
                ra: try sample.address("ra")
            )
            #expect(try confirm == sample.number("expected"))
        case "s1":
            let key = toolbox.s1(k: try sample.number("k"), r1: try sample.number("r1"), r2: try sample.number("r2"))
            #expect(try key == sample.number("expected"))
        case "ah":
            let prand = UInt32(truncatingIfNeeded: try sample.number("prand"))
            #expect(try toolbox.ah(irk: sample.number("irk"), prand: prand) == UInt32(sample.number("expected")))
        case "f4":
            let confirm = toolbox.f4(u: try sample.wide("u"), v: try sample.wide("v"), x: try sample.number("x"), z: 0)
            #expect(try confirm == sample.number("exp"))
        case "f5":
            let keys = toolbox.f5(
                w: DiffieHellmanKey(try sample.wide("w")),
                n1: try sample.number("n1"),
                n2: try sample.number("n2"),
                a1: try sample.address("a1"),
                a2: try sample.address("a2")
            )
            #expect(try keys.macKey == sample.number("exp_mackey"))
            #expect(try keys.longTermKey == sample.number("exp_ltk"))
        case "f6":
            let check = toolbox.f6(
                w: try sample.number("w"),
                n1: try sample.number("n1"),
                n2: try sample.number("n2"),
                r: try sample.number("r"),
                ioCapability: UInt32(truncatingIfNeeded: try sample.number("io_cap")),
                a1: try sample.address("a1"),
                a2: try sample.address("a2")
            )
            #expect(try check == sample.number("exp"))
        case "g2":
            let digits = toolbox.g2(
                u: try sample.wide("u"),
                v: try sample.wide("v"),
                x: try sample.number("x"),
                y: try sample.number("y")
            )
            #expect(sample.text("expected_6digits") == String(digits))
        case "h6":
            let keyID = UInt32(truncatingIfNeeded: try sample.number("keyid"))
            #expect(try toolbox.h6(w: sample.number("w"), keyID: keyID) == sample.number("expected"))
        case "h7":
            #expect(try toolbox.h7(salt: sample.number("salt"), w: sample.number("w")) == sample.number("expected"))
        case "att_sign":
            let key = UInt128(littleEndianBytes: try sample.octets("key"))
            let signature = toolbox.signature(of: try sample.octets("msg"), counter: sample.counter, key: key)
            #expect(try signature == sample.octets("expected_signature12"))
        case "AES-CMAC(0,m)":
            let code = functions.authenticationCode(of: try sample.octets("m"), key: 0)
            #expect(try code == sample.number("expected"))
        case "csis_sih":
            let prand = UInt32(truncatingIfNeeded: try sample.number("prand"))
            #expect(try toolbox.ah(irk: sample.number("sirk"), prand: prand) == UInt32(sample.number("ah_expected")))
        case "sih":
            let prand = UInt32(truncatingIfNeeded: UInt128(littleEndianBytes: try sample.octets("r")))
            let hash = toolbox.ah(irk: UInt128(littleEndianBytes: try sample.octets("k")), prand: prand)
            #expect(UInt128(hash) == UInt128(littleEndianBytes: try sample.octets("expected")))
        case "verify_att_sign":
            try verify(sample)
        default:
            // Functions of coordinated sets, which are composed of these functions and belong to a profile.
            #expect(sample.function.hasPrefix("csis_") || sample.function == "CSIP")
        }
    }

    private func verify(_ sample: Sample) throws {
        let signed = try sample.octets("msg")
        let isExpectedToMatch = try #require(sample.isExpectedToMatch as Bool?)
        // A message that is too short for a PDU and its signature has no signature.
        guard signed.count > 12 else {
            #expect(!isExpectedToMatch)
            return
        }
        let signature = Array(signed.suffix(12))
        let counter = UInt32(truncatingIfNeeded: UInt128(littleEndianBytes: Array(signature.prefix(4))))
        let key = UInt128(littleEndianBytes: try sample.octets("key"))
        let computed = toolbox.signature(of: signed.dropLast(12), counter: counter, key: key)
        #expect((computed == signature) == isExpectedToMatch)
    }
}

extension UInt128 {
    fileprivate init(littleEndianBytes octets: [UInt8]) {
        self = octets.reversed().reduce(0) { $0 << 8 | UInt128($1) }
    }
}
