import ArgumentParser
import BLEHCI

/// How a command looks for devices.
struct FindOptions: ParsableArguments {
    @Flag(help: "Also look for devices that advertise on LE Coded. The scan then receives less on LE 1M.")
    var coded = false

    /// The PHYs of the primary channels on which the command scans. The host uses those that the controller can scan.
    var phys: PHYSet { coded ? [.le1M, .leCoded] : .le1M }
}
