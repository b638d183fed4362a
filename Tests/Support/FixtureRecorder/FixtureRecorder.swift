import BLE
import Foundation
import RecordedRuns

/// Performs a recorded run before a controller, for a capture of it: `fixture-recorder NAME ADAPTER CAPTURE`.
///
/// Cues for the peer are lines on standard output. A line on standard input says that the controller is back.
@main
struct FixtureRecorder: Stage {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, let run = RecordedRun.named(arguments[1]) else {
            print(RecordedRun.all.map(\.name).joined(separator: "\n"))
            return
        }
        var configuration = Adapter.Configuration()
        run.configure(&configuration)
        configuration.capturePath = arguments[3]
        let specification = try AdapterSpecification(parsing: arguments[2])
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
