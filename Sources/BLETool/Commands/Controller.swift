import ArgumentParser
import BLE
import BLEHCITransport
import BLEProfiles
import BluetoothTypes
import Glibc

struct Controller: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "controller",
        abstract: "Serve controllers in software to other programs until stopped.",
        discussion: """
            Each connection gets a new controller, and all controllers are on one air, as if within radio range. A \
            host connects with --adapter tcp:HOST:PORT or unix:PATH, or by any other program that uses H4 over a \
            stream. Every program that can connect can use the air. Listen on 127.0.0.1 or a UNIX socket to limit \
            that.
            A host saves its bonds by the address of its controller. Without --address, the address depends on the \
            order in which hosts connect. With --address it is fixed, also when this command is started again.
            """
    )

    @Option(
        help: ArgumentHelp(
            "The address to listen on: unix:PATH or tcp:HOST:PORT, port 0 for a free one; may be repeated "
                + "(default: tcp:127.0.0.1:6402).",
            valueName: "address"
        ),
        transform: { try ListeningAddress(parsing: $0) }
    )
    var listen: [ListeningAddress] = []

    @Option(
        help: ArgumentHelp(
            "The public address of the controller at the --listen in the same place; one host at a time then uses it. May "
                + "be repeated.",
            valueName: "address"
        ),
        transform: { try ControllerOptions.publicAddress($0) }
    )
    var address: [DeviceAddress] = []

    @OptionGroup(title: "Kind") var kind: ControllerOptions

    @OptionGroup(title: "Faults") var faults: FaultOptions

    @Option(
        help: ArgumentHelp("Record each controller's HCI traffic into this folder (btsnoop).", valueName: "folder"),
        completion: .directory
    )
    var capture: String?

    @Flag(help: "Replace keys by zeros in the captures, so that they can be shared.")
    var maskKeys = false

    @Flag(help: "Print lines of JSON.")
    var json = false

    /// Where hosts connect, and the address of the controller there, if one was chosen.
    var places: [(listener: ListeningAddress, controllerAddress: DeviceAddress?)] {
        let listeners = listen.isEmpty ? [.tcp(host: "127.0.0.1", port: 6402)] : listen
        return listeners.enumerated().map { ($1, $0 < address.count ? address[$0] : nil) }
    }

    func validate() throws {
        let listeners = max(listen.count, 1)
        guard address.count <= listeners else {
            throw ValidationError("each --address is for one --listen: there are \(address.count) for \(listeners)")
        }
        guard Set(address).count == address.count else { throw ValidationError("an --address is given twice") }
    }

    func run() async throws {
        if let capture { try File.makeFolder(capture) }
        let (events, continuation) = AsyncStream<ControllerServer.Event>.makeStream(
            bufferingPolicy: .bufferingNewest(4096)
        )
        let server = ControllerServer(configuration: configuration) { continuation.yield($0) }
        do {
            for place in places {
                let listener = try await server.listen(on: place.listener, controllerAddress: place.controllerAddress)
                try tell(.listening(listener))
            }
            for await event in events { try tell(.happened(event)) }
        } catch {
            await uncancelled { await server.close() }
            throw error
        }
        // The stream ends when the task is cancelled, which is the normal end of serving.
        await uncancelled { await server.close() }
    }

    var configuration: ControllerServer.Configuration {
        var configuration = ControllerServer.Configuration()
        kind.apply(to: &configuration)
        faults.apply(to: &configuration)
        configuration.captureFolder = capture
        configuration.captureMasksKeys = maskKeys
        return configuration
    }

    private func tell(_ line: ControllerLine) throws {
        if json { try Output.standard.json(line.json) } else { try Output.standard.line(line.text) }
    }
}
