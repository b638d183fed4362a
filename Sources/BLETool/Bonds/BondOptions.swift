import ArgumentParser
import BLE
import BLEKeyStore
import BLEProfiles
import BluetoothHost

/// The options that all commands of `ble bonds` share.
struct BondOptions: ParsableArguments {
    @OptionGroup var state: StateOptions

    @Option(
        help: ArgumentHelp(
            "Only this host: its controller's public address, or its adapter if the controller has none.",
            valueName: "host"
        )
    )
    var host: String?

    @Flag(help: "Print lines of JSON.")
    var json = false

    /// Returns the selected hosts.
    func hosts() throws -> [HostStateStore] {
        let directory = try state.directory()
        return try host.map { [HostStateStore($0, in: directory)] } ?? HostStateStore.all(in: directory)
    }

    /// Performs `body` with the selected hosts whose bonds can be read, if there are such hosts or no others.
    ///
    /// - Throws: the error of `body`, or afterwards the reason why the first of the others cannot be read. Further
    ///   reasons are printed.
    func withReadable(
        _ body: ([(host: HostStateStore, security: HostSecurityState)]) async throws -> Void
    ) async throws {
        var readable: [(HostStateStore, HostSecurityState)] = []
        var failure: StateFileError?
        for host in try hosts() {
            do throws(StateFileError) {
                readable.append((host, try host.read(warn: Output.complainAboutState)))
            } catch {
                if failure == nil { failure = error } else { Output.complainAboutState("\(error)") }
            }
        }
        guard let failure else { return try await body(readable) }
        if !readable.isEmpty {
            do {
                try await body(readable)
            } catch {
                Output.complainAboutState("\(failure)")
                throw error
            }
        }
        throw failure
    }

    /// Returns all selected hosts.
    ///
    /// - Throws: the reason why the first of those that cannot be read cannot be.
    func allReadable() throws -> [(host: HostStateStore, security: HostSecurityState)] {
        try hosts().map { host in (host, try host.read(warn: Output.complainAboutState)) }
    }

    func tell(_ event: JSON, _ text: String) throws {
        if json { try Output.standard.json(event) } else { try Output.standard.line(text) }
    }
}
