import Foundation
import Testing

@testable import BLEHarness

@Suite("Our host, by scripts of the specification's procedures", .serialized, .timeLimit(.minutes(10)))
struct ConformanceTests {
    /// The abilities of this host, of those that scripts may require.
    static let abilities = ["pairing", "encryption", "consent"]

    static let scripts: [Script] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: Programs.scripts)) ?? []
        return names.filter { $0.hasSuffix(".hci") }.sorted().compactMap {
            try? Script(contentsOf: "\(Programs.scripts)/\($0)")
        }
    }()

    @Test(arguments: scripts.filter { Set($0.needs).isSubset(of: abilities) })
    func hostPassesTheScript(script: Script) async throws {
        let abilities = Self.abilities.flatMap { ["--with", $0] }
        let outcome = try await Programs.harness(["--script", script.path, "--timeout", "60"] + abilities)
        #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
        #expect(outcome.output.contains("1 passed"))
    }

    @Test func atLeastThirtyScriptsHaveTitleAndSection() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Programs.scripts).filter {
            $0.hasSuffix(".hci")
        }
        #expect(Self.scripts.count == files.count, "a script cannot be read")
        #expect(Self.scripts.count >= 30)
        // Otherwise a script would not be run.
        #expect(Set(Self.scripts.flatMap(\.needs)).isSubset(of: Self.abilities))
        #expect(Set(Self.scripts.map(\.title)).count == Self.scripts.count)
        for script in Self.scripts {
            #expect(!script.title.isEmpty && script.specification.hasPrefix("Vol "), "\(script.path)")
            #expect(!script.host.isEmpty, "\(script.path)")
        }
    }
}

extension Script: CustomTestStringConvertible {
    public var testDescription: String { title }
}
