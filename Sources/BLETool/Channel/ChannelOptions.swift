import ArgumentParser
import BLE

/// The input and output of a channel, and the lengths that it receives.
struct ChannelOptions: ParsableArguments {
    @Option(help: ArgumentHelp("What is sent; standard input otherwise.", valueName: "file"))
    var input: String?

    @Option(help: ArgumentHelp("Where to what comes goes; standard output otherwise.", valueName: "file"))
    var output: String?

    @Option(help: ArgumentHelp("The longest SDU that is received, 23 to 65535 octets.", valueName: "octets"))
    var mtu: UInt16 = 2048

    @Option(help: ArgumentHelp("The longest K-frame that is received, 23 to 4096 octets.", valueName: "octets"))
    var mps: UInt16 = 247

    @Option(
        help: ArgumentHelp(
            "How much may wait in either direction, which is what the peer gets credits for.",
            valueName: "octets"
        )
    )
    var buffer = 32768

    @Flag(help: "Close the channel once the input has ended and all is sent.")
    var close = false

    func validate(asJSON: Bool) throws {
        guard (23...65535).contains(mtu) else { throw ValidationError("--mtu is 23 to 65535") }
        guard (23...4096).contains(mps) else { throw ValidationError("--mps is 23 to 4096") }
        guard (0...(1 << 24)).contains(buffer) else { throw ValidationError("--buffer is 0 to 16777216") }
        if asJSON, output == nil { throw ValidationError("--json needs --output, so that what comes is kept apart") }
    }

    var configuration: L2CAPChannel.Configuration {
        L2CAPChannel.Configuration(mtu: mtu, mps: mps, receiveCapacity: buffer, sendCapacity: buffer)
    }

    func openFiles() throws(FileError) -> ChannelFiles {
        ChannelFiles(input: try OctetInput(input), output: try OctetOutput(output))
    }
}

/// The files that a channel reads from and writes to.
struct ChannelFiles: Sendable {
    let input: OctetInput
    let output: OctetOutput
}
