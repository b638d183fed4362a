import Foundation
import GatewayFuzzTargets
import Testing

/// The inputs that once revealed a fault, random bytes, and changed seeds. `make fuzz TARGET=gateway` runs more.
struct GatewayFuzzTests {
    private static let fixtures = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Fixtures/fuzz")

    @Test(arguments: GatewayFuzzTarget.allCases)
    func inputsOfEarlierFaultsAreProcessedWithoutATrap(target: GatewayFuzzTarget) throws {
        let folder = Self.fixtures.appendingPathComponent(target.rawValue)
        guard FileManager.default.fileExists(atPath: folder.path) else { return }
        for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil) {
            target.run([UInt8](try Data(contentsOf: file)))
        }
    }

    /// The inputs of a target that is renamed or misspelled would not be run any more. There need be none of the
    /// gateway.
    @Test func foldersOfInputsAreThoseOfTargets() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.fixtures.path)
        #expect(!folders.isEmpty)
        for folder in folders where folder.hasPrefix("gateway") {
            #expect(GatewayFuzzTarget(rawValue: folder) != nil, "Fixtures/fuzz/\(folder)")
        }
    }

    @Test(arguments: GatewayFuzzTarget.allCases)
    func changedSeedsAreProcessedWithoutATrap(target: GatewayFuzzTarget) {
        let seeds = target.seeds
        for number in 0..<300 {
            var mutation = FuzzScriptMutation(seed: UInt64(number))
            target.run(seeds[number % seeds.count])
            target.run(mutation.mutate(FuzzScript(seeds[number % seeds.count])).octets)
        }
    }

    @Test func scriptIsReadAsItWasWritten() {
        let script = FuzzScript([FuzzScript.Step(1, [3, 4]), FuzzScript.Step(2)])
        #expect(script.octets == [1, 2, 0, 3, 4, 2, 0, 0])
        #expect(FuzzScript(script.octets) == script)
        #expect(FuzzScript([9, 0xFF, 0xFF, 5]) == FuzzScript([FuzzScript.Step(9, [5])]))
    }

    @Test func nameOfTheGatewaySelectsItsTargets() {
        #expect(GatewayFuzzTarget.named("gateway") == GatewayFuzzTarget.allCases)
        #expect(GatewayFuzzTarget.named("gateway-clients") == [.clients])
        #expect(GatewayFuzzTarget.named("none").isEmpty)
    }
}
