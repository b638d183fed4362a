import ByteCoding

/// A part of the stack that takes octets from outside, and what is done with any octets to find what harms it.
///
/// A target does not tell whether the octets were good. It fails by trapping: in the code it calls, or where something that
/// must always hold does not.
package enum FuzzTarget: String, CaseIterable, Sendable {
    /// Every event that a controller may send.
    case event
    /// Every command, and what each returns.
    case command
    /// The stream of a UART or a socket, of which either side's packets are made.
    case stream
    /// ACL packets of one link and the frames that they make up.
    case acl
    /// The LE signalling channel, and credit-based channels with their frames.
    case signaling
    /// Requests and commands to a GATT server.
    case server
    /// Answers to a GATT client that has a request open, of every procedure in turn.
    case client
    /// The Security Manager in both roles, from any state of a pairing.
    case security
    /// Advertising data.
    case advertising
    /// A capture of any format.
    case capture
    /// A profile as JSON.
    case profile
    /// A whole host, in a world of its own, whose controller also says what the input makes it say.
    case host

    /// Does with `input` what outside octets are for.
    package func run(_ input: [UInt8]) {
        switch self {
        case .event: fuzzEvent(input)
        case .command: fuzzCommand(input)
        case .stream: fuzzStream(input)
        case .acl: fuzzACL(input)
        case .signaling: fuzzSignaling(input)
        case .server: fuzzServer(input)
        case .client: fuzzClient(input)
        case .security: fuzzSecurity(input)
        case .advertising: fuzzAdvertising(input)
        case .capture: fuzzCapture(input)
        case .profile: fuzzProfile(input)
        case .host: HostFuzzing.run(Script(input))
        }
    }
}

extension FuzzTarget {
    /// The targets of a name: a target's own, or a protocol's that has several or another one.
    package static func named(_ name: String) -> [FuzzTarget] {
        switch name {
        case "hci": [.event, .command, .stream, .acl]
        case "l2cap": [.acl, .signaling]
        case "att": [.server, .client]
        case "smp": [.security]
        case "ad": [.advertising]
        default: FuzzTarget(rawValue: name).map { [$0] } ?? []
        }
    }
}

/// Fails where what must always hold does not.
func require(_ condition: @autoclosure () -> Bool, _ text: @autoclosure () -> String) {
    if !condition() { fatalError(text()) }
}
