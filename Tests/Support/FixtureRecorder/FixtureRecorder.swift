import BLE
import Foundation
import RecordedRuns

/// Performs a recorded run with a controller, for a capture of it: `fixture-recorder NAME ADAPTER CAPTURE`.
///
/// Cues for the peer are lines on standard output. A line on standard input says that the controller is back.
@main
struct FixtureRecorder: Stage {
    static func main() async {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, let run = RecordedRun.named(arguments[1]) else {
            complain(
                "NAME ADAPTER CAPTURE are wanted; names are " + RecordedRun.all.map(\.name).joined(separator: ", ")
            )
            exit(2)
        }
        do {
            try await record(run, arguments[2], arguments[3])
        } catch {
            complain("\(run.name): \(error)")
            exit(1)
        }
    }

    private static func complain(_ message: String) {
        FileHandle.standardError.write(Data("fixture-recorder: \(message)\n".utf8))
    }

    private static func record(_ run: RecordedRun, _ adapter: String, _ capture: String) async throws {
        var configuration = Adapter.Configuration()
        run.configure(&configuration)
        configuration.capturePath = capture
        let specification = try AdapterSpecification(parsing: adapter)
        let adapter = try await Adapter.open(specification, configuration: configuration)
        do {
            try await run.perform(on: adapter, FixtureRecorder())
            await adapter.close()
        } catch {
            await adapter.close()
            throw error
        }
    }

    func sleep(for duration: Duration) async throws {
        try await Task.sleep(for: duration)
    }

    func tell(_ cue: String) {
        FileHandle.standardOutput.write(Data((cue + "\n").utf8))
    }

    func loseController(of adapter: Adapter) async throws {
        let events = await adapter.events()
        tell("loseController")
        for await event in events {
            if case .poweredOn = event { break }
        }
    }
}
