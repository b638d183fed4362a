import ArgumentParser
import BLE

/// The input and output of a channel, and the lengths that it receives.
struct ChannelOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The file to send (default: standard input).", valueName: "file"),
        completion: .file()
    )
    var input: String?

    @Option(
        help: ArgumentHelp("The file for received bytes (default: standard output).", valueName: "file"),
        completion: .file()
    )
    var output: String?

    @Option(help: ArgumentHelp("Maximum length of received SDUs: 23 to 65535 bytes.", valueName: "bytes"))
    var mtu: UInt16 = 2048

    @Option(help: ArgumentHelp("Maximum length of received K-frames: 23 to 4096 bytes.", valueName: "bytes"))
    var mps: UInt16 = 247

    @Option(
        help: ArgumentHelp(
            "Maximum number of bytes that wait in each direction. It limits the credits of the peer.",
            valueName: "bytes"
        )
    )
    var buffer = 32768

    @Flag(help: "Close the channel when the whole input is sent.")
    var close = false

    func validate(asJSON: Bool) throws {
        guard (23...65535).contains(mtu) else { throw ValidationError("--mtu is 23 to 65535 bytes") }
        guard (23...4096).contains(mps) else { throw ValidationError("--mps is 23 to 4096 bytes") }
        guard (0...(1 << 24)).contains(buffer) else { throw ValidationError("--buffer is 0 to 16777216 bytes") }
        if asJSON, output == nil { throw ValidationError("--json needs --output for the received bytes") }
    }

    var configuration: L2CAPChannel.Configuration {
        L2CAPChannel.Configuration(mtu: mtu, mps: mps, receiveByteCapacity: buffer, sendByteCapacity: buffer)
    }

    /// - Throws: ``FileError``, or `CancellationError` at once if the task is cancelled: a named pipe may have no other
    ///   end yet.
    func openFiles() async throws -> ChannelFiles {
        ChannelFiles(input: try await ByteInput.opened(input), output: try await ByteOutput.opened(output))
    }
}

/// The files that a channel reads from and writes to.
struct ChannelFiles: Sendable {
    let input: ByteInput
    let output: ByteOutput
}
