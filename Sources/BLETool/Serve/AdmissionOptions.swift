import ArgumentParser
import BLE
import BLEProfiles
import BluetoothTypes

/// Options for the clients that may pair with `ble serve`, and for the time when they may.
struct AdmissionOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Let clients begin pairings only for this long from the start; the command window opens it again.",
            valueName: "s"
        ),
        transform: { try Seconds(argument: $0) }
    )
    var pairingWindow: Seconds?

    @Option(
        help: ArgumentHelp(
            "Let only the device with this identity address pair, public or random; may be repeated.",
            valueName: "address"
        ),
        transform: { try AdmissionOptions.address($0) }
    )
    var allowPairing: [UInt64] = []

    /// Whether any option about pairing is given.
    var isGiven: Bool { pairingWindow != nil || !allowPairing.isEmpty }

    /// Reads a device's address, whose digits do not say whether it is public or random.
    static func address(_ text: String) throws(ArgumentProblem) -> UInt64 {
        guard let address = DeviceAddress(text, isRandom: true) else {
            throw ArgumentProblem("\"\(terminalSafe(text))\" is not a device address, as in F0:12:34:56:78:9A")
        }
        return address.value
    }

    func apply(to policy: inout SecurityPolicy) {
        if pairingWindow != nil { policy.pairable = .duringWindow }
        guard !allowPairing.isEmpty else { return }
        policy.pairingAcceptList = Set(
            allowPairing.flatMap { value in
                [DeviceAddress(value, isRandom: false), DeviceAddress(value, isRandom: true)]
            }
        )
    }
}
