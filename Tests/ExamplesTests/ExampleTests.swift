import CoreBluetooth
import Testing

@testable import Examples

@Suite("Examples")
struct ExampleTests {
    @Test("Both ends of an example show all that is expected of them", .timeLimit(.minutes(10)), arguments: Example.all)
    func everyExample(_ example: Example) async throws {
        let stage = Stage(example)
        try await stage.perform()
        #expect(stage.peripheral.missing == [])
        #expect(stage.central.missing == [])
    }

    @Test("An end that does not show what is expected of it is known to miss it")
    func missing() async {
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
