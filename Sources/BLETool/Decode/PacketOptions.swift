import ArgumentParser
import BLEDissection
import BLEProfiles

/// Options that select packets, and the form in which they are printed.
struct PacketOptions: ParsableArguments {
    /// When lines are coloured.
    enum Color: String, ExpressibleByArgument, CaseIterable {
        case auto
        case always
        case never
    }

    /// The part of a command's help about lines and filters.
    static let explanation = """
        A line has the packet's number, the time of day in UTC, the adapter, the direction (< to the controller, > from \
        it) and what the packet is; in brackets, the number of the packet that it answers and how long that took, and \
        how many packets the recorder has lost before it.

        A filter is adapter=hciN, address=ADDRESS, link=HANDLE, layer=LAYER (command, event, acl, l2cap, att, smp, \
        synchronous, iso, note), opcode=NUMBER, handle=NUMBER (an attribute) or malformed; where several are given, all \
        must hold.
        """

    @Flag(name: .shortAndLong, help: "Print every field of each packet.")
    var verbose = false

    @Flag(help: "Print a line of JSON for each packet.")
    var json = false

    @Option(
        help: ArgumentHelp("Print only packets for which this holds; may be repeated.", valueName: "expr"),
        transform: {
            guard let filter = PacketFilter(parsing: $0) else { throw ArgumentProblem("\($0) is no filter") }
            return filter
        }
    )
    var filter: [PacketFilter] = []

    @Option(help: ArgumentHelp("Colour lines: auto, always or never.", valueName: "when"))
    var color = Color.auto

    var isColored: Bool {
        switch color {
        case .auto: Terminal.isPresent && environment("NO_COLOR") == nil
        case .always: true
        case .never: false
        }
    }
}
