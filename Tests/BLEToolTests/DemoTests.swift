import ArgumentParser
import BLEExamples
import Testing

@testable import BLETool

@Suite("Demo")
struct DemoTests {
    @Test("Without a name, both ends of the first example run")
    func bothEndsOfTheFirstExampleRunWithoutAName() throws {
        let demo = try Demo.parse([])
        #expect(demo.name == "brightness")
        #expect(demo.role == .both)
    }

    @Test("Each example can be named", arguments: Example.all.map(\.name))
    func eachExampleCanBeNamed(name: String) throws {
        #expect(try Demo.parse([name, "--role", "central"]).name == name)
    }

    @Test(
        "An impossible request is refused with the possible ones",
        arguments: [
            (
                ["nope"],
                "there is no example \"nope\"; the examples are brightness, texttransfer, walkthrough, titan, practical"
            ),
            (["--adapter", "virtual"], "--adapter goes with --role central or --role peripheral"),
            (["titan", "--text", "-"], "--text goes with an example that sends one: texttransfer"),
            (
                ["texttransfer", "--role", "central", "--text", "-"],
                "--text goes with an example that sends one: texttransfer"
            ),
        ]
    )
    func impossibleRequestIsRefusedWithThePossibleOnes(arguments: [String], message: String) {
        #expect {
            _ = try Demo.parse(arguments)
        } throws: {
            Demo.message(for: $0) == message
        }
    }
}
