/// What is to be sent, expected and checked, in order.
struct Script: Sendable {
    /// A statement and where it stands.
    struct Line: Sendable {
        let file: String
        let number: Int
        /// As it is written.
        let text: String
        let statement: Statement
    }

    /// The file's path.
    let path: String
    var title = ""
    /// The part of the specification that it is about.
    var specification = ""
    /// The host that it is written for: a command line, with `{adapter}`, `{here}` and `{directory}` in it.
    var host: [String] = []
    /// What the host must be able to do for the script to make sense.
    var needs: [String] = []
    var lines: [Line] = []
}

/// One line of a script.
enum Statement: Equatable, Sendable {
    /// Answers what hosts ask a controller, from here on.
    case controller(Controller)
    case define(String, Octets)
    /// How long each thing is waited for where the line itself does not say.
    case patience(Duration)
    /// How long the pieces are in which frames go to the host; whole for nil.
    case fragments(Int?)
    /// Whether the host is told of packets that are sent.
    case completions(Bool)
    /// The connection handle that what follows is about.
    case link(UInt16)
    case rule(Rule)
    case send(Destination, Octets)
    case expect(Source, Octets, within: Duration?)
    /// Expects a command, which then is answered as if it had not been expected.
    case await(UInt16, Octets, within: Duration?)
    /// Command Complete for the command that was expected last.
    case reply(Octets)
    /// Command Status for the command that was expected last.
    case status(UInt8)
    /// Number Of Completed Packets.
    case completed(Int)
    case connect(Connection)
    case disconnect(reason: UInt8)
    /// Nothing comes for a while but what is answered by rules.
    case nothing(Duration)
    case pause(Duration)
    /// Ends the connection that the host has to its controller.
    case close
    /// Waits until the host connects again.
    case accept
    /// A line for the host's standard input.
    case input(String)
    /// A line on the host's standard output that has this text in it.
    case output(String)
    /// The same of its standard error.
    case errors(String)
    /// The host ends by itself, with this status.
    case exit(Int32)
}

/// How something is wrapped on its way to the host.
enum Destination: Equatable, Sendable {
    /// Not at all: a packet with its indicator.
    case packet
    /// An event of this code, its length filled in; of LE Meta with a subevent.
    case event(UInt8, subevent: UInt8?)
    /// An ACL packet on the link with this Packet Boundary flag, its length filled in.
    case acl(boundary: UInt8)
    /// An L2CAP frame on the link, its headers filled in.
    case channel(UInt16)
}

/// Where something is looked for in what the host sends.
enum Source: Equatable, Sendable {
    /// A whole packet with its indicator.
    case packet
    /// The parameters of a command.
    case command(UInt16)
    /// The payload of an L2CAP frame on the link.
    case channel(UInt16)
}

/// What is done by itself when something comes that no line expects.
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

/// A connection as its Connection Complete event tells of it.
struct Connection: Equatable, Sendable {
    enum Role: UInt8, Sendable {
        case central = 0
        case peripheral = 1
    }

    /// The host's role.
    var role = Role.peripheral
    /// Least significant octet first.
    var peer: [UInt8] = [0x9A, 0x78, 0x56, 0x34, 0x12, 0xF0]
    var isPeerRandom = true
    /// In units of 1.25 ms.
    var interval: UInt16 = 24
    var latency: UInt16 = 0
    /// In units of 10 ms.
    var supervisionTimeout: UInt16 = 500
}
