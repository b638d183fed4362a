import CoreBluetooth
import Testing

@testable import BLEExamples

@Suite("Examples")
struct ExampleTests {
    @Test("Both ends of an example show everything that is expected", .timeLimit(.minutes(10)), arguments: Example.all)
    func bothEndsOfAnExampleShowEverythingExpected(_ example: Example) async throws {
        let stage = Stage(example)
        try await stage.perform()
        #expect(stage.peripheral.missing == [])
        #expect(stage.central.missing == [])
    }

    @Test("An end that does not show the expected lines is reported")
    func endThatDoesNotShowTheExpectedLinesIsReported() async {
        let performance = Performance(Part(expected: ["a", "b"]) { _, _ in Silence() }, options: [:])
        performance.show("begins otherwise")
        performance.show("bright")
        #expect(performance.missing == ["a"])
        performance.show("b")
        #expect(performance.missing == ["a"])
        performance.show("all")
        #expect(performance.missing == [])
        #expect(await performance.allLines == ["begins otherwise", "bright", "b", "all"])
    }

    private final class Silence: Screen {
        func userReads(_ line: String) {}
        func viewWillDisappear() {}
    }
}
