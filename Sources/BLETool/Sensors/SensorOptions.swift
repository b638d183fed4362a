import ArgumentParser
import BLEProfiles
import BluetoothSensors

/// The options that select whether and how advertisements of sensors are decoded.
struct SensorOptions: ParsableArguments {
    @Flag(help: "Show the readings of sensors and beacons.")
    var decode = false

    @Option(
        help: ArgumentHelp(
            "The key of a sensor that encrypts its readings; may be repeated. Other users of this machine can see it; "
                + "--bind-keys hides it.",
            valueName: "address=key"
        ),
        transform: { try SensorKey(argument: $0) }
    )
    var bindKey: [SensorKey] = []

    @Option(help: ArgumentHelp("A file with such keys, one on each line; - for standard input.", valueName: "file"))
    var bindKeys: String?

    func validate() throws {
        if !decode, !bindKey.isEmpty || bindKeys != nil {
            throw ValidationError("--bind-key and --bind-keys go with --decode")
        }
    }

    /// The decoder with the keys; nil if advertisements are not decoded. A key of `--bind-key` replaces that of the
    /// file for the same address.
    func reader() async throws -> SensorReader? {
        guard decode else { return nil }
        var decoder = SensorDecoder()
        var keys: [SensorKey] = []
        if let bindKeys { keys = try await SensorKey.keys(inFile: bindKeys) }
        for entry in keys + bindKey {
            guard decoder.setKey(entry.key, for: entry.address) else {
                throw ArgumentProblem("at most \(SensorDecoder.maximumKeyCount) sensors can have keys; give fewer")
            }
        }
        return SensorReader(decoder: decoder)
    }
}
