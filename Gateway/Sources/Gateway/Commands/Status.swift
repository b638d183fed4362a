import ArgumentParser
import Foundation
import GatewayCore

/// Prints the status of a running gateway.
struct Status: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print what a running gateway does: its adapters, clients and connections."
    )

    @OptionGroup var state: StateOptions

    @Flag(help: "Print a JSON object.")
    var json = false

    func run() async throws {
        let directory = StateDirectory(path: try state.settings().stateDirectory)
        let answer = try StatusClient(path: directory.statusSocketPath).read()
        let status: GatewayStatus
        do {
            status = try JSONDecoder().decode(GatewayStatus.self, from: answer)
        } catch {
            throw StateError(
                path: directory.statusSocketPath,
                failure: "the answer is not a status",
                advice: "use the `ble-gateway` of the same version as the running one"
            )
        }
        try StandardOutput.line(json ? status.json : status.text)
    }
}
