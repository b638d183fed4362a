import ArgumentParser
import Foundation

/// Prints the encryption key.
struct Key: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the encryption key that Home Assistant asks for; make it if there is none.",
        discussion: """
            Run it as the user of the service, so that the service can read the key, and with the same state \
            directory. It says on standard error when it has made a key.
            """
    )

    @OptionGroup var state: StateOptions

    func run() async throws {
        try printKey(to: STDOUT_FILENO, notice: StandardError.write)
    }

    /// Prints the key.
    ///
    /// - Parameters:
    ///   - descriptor: the file descriptor for the key.
    ///   - notice: takes a line about a new key.
    func printKey(to descriptor: Int32, notice: (String) -> Void) throws {
        let directory = StateDirectory(path: try state.settings().stateDirectory)
        try directory.create()
        let (key, isNew) = try directory.keyFile.readOrCreate()
        if isNew { notice("ble-gateway: made a new key in \(directory.path)\n") }
        try StandardOutput.line(key.base64, to: descriptor)
    }
}
