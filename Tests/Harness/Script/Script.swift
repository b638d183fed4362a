/// The packets to send and the expectations to check, in order.
struct Script: Sendable {
    /// A statement and its position.
    struct Line: Sendable {
        let file: String
        let number: Int
        /// The text of the line.
        let text: String
        let statement: Statement
    }

    /// The file's path.
    let path: String
    var title = ""
    /// The part of the specification that the script tests.
    var specification = ""
    /// The default host: a command line with placeholders `{adapter}`, `{here}` and `{directory}`.
    var host: [String] = []
    /// The abilities of the host that the script requires.
    var needs: [String] = []
    var lines: [Line] = []
}

/// One line of a script.
enum Statement: Equatable, Sendable {
    /// From here on, answers the host's commands as a controller.
    case controller(Controller)
    case define(String, Octets)
    /// Maximum time to wait for each message if the line does not set one.
    case patience(Duration)
    /// The length of fragments for frames to the host; nil for whole frames.
    case fragments(Int?)
    /// Whether sent packets are reported to the host as completed.
    case completions(Bool)
    /// The connection handle for the following lines.
    case link(UInt16)
    case rule(Rule)
    case send(Destination, Octets)
    case expect(Source, Octets, within: Duration?)
    /// Expects a command, which is then answered as if it was unexpected.
    case await(UInt16, Octets, within: Duration?)
    /// Command Complete for the last expected command.
    case reply(Octets)
    /// Command Status for the last expected command.
    case status(UInt8)
    /// Number Of Completed Packets.
    case completed(Int)
    case connect(Connection)
    case disconnect(reason: UInt8)
    /// Expects nothing for a time, except messages that rules answer.
    case nothing(Duration)
    case pause(Duration)
    /// Ends the host's connection to its controller.
    case close
    /// Waits until the host connects again.
    case accept
    /// A line for the host's standard input.
    case input(String)
    /// Expects a line on the host's standard output that contains this text.
    case output(String)
    /// The same on its standard error.
    case errors(String)
    /// Expects the host to end with this status.
    case exit(Int32)
}

/// The headers that are added to bytes for the host.
enum Destination: Equatable, Sendable {
    /// None: the bytes are a packet with its indicator.
    case packet
    /// An event with this code; the length is added. An LE Meta event also has a subevent code.
    case event(UInt8, subevent: UInt8?)
    /// An ACL packet on the link with this Packet Boundary flag; the length is added.
    case acl(boundary: UInt8)
    /// An L2CAP frame on the link; the headers are added.
    case channel(UInt16)
}

/// The part of the host's output in which a pattern is expected.
enum Source: Equatable, Sendable {
    /// A whole packet with its indicator.
    case packet
    /// The parameters of a command.
    case command(UInt16)
    /// The payload of an L2CAP frame on the link.
    case channel(UInt16)
}

/// The automatic answer to an unexpected message.
struct Rule: Equatable, Sendable {
    enum Action: Equatable, Sendable {
        /// Command Complete for a command, a frame on the same channel for a frame.
        case reply(Octets)
        case status(UInt8)
        case ignore
    }

    let source: Source
    let pattern: Octets
    let action: Action
    let isOnce: Bool
}

/// The properties of a connection in its Connection Complete event.
struct Connection: Equatable, Sendable {
    enum Role: UInt8, Sendable {
        case central = 0
        case peripheral = 1
    }

    /// The host's role.
    var role = Role.peripheral
    /// The peer's address, least significant byte first.
    var peer: [UInt8] = [0x9A, 0x78, 0x56, 0x34, 0x12, 0xF0]
    var isPeerRandom = true
    /// In units of 1.25 ms.
    var interval: UInt16 = 24
    var latency: UInt16 = 0
    /// In units of 10 ms.
    var supervisionTimeout: UInt16 = 500
}
