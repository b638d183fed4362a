import ArgumentParser

/// Prints the encryption key.
struct Key: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the encryption key that Home Assistant asks for; make it if there is none.",
        discussion: "Run it as the user of the service, so that the service can read the key."
    )

    @OptionGroup var state: StateOptions

    func run() async throws {
        let directory = StateDirectory(path: try state.settings().stateDirectory)
        try directory.create()
        print(try directory.keyFile.readOrCreate().key.base64)
    }
}
