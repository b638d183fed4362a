import BLEByteCoding

/// A part of the stack that takes bytes from outside, and the operations on these bytes that may reveal faults.
///
/// A target does not report whether the bytes were valid. It fails by trapping: in the code that it calls, or if an
/// invariant does not hold.
package enum FuzzTarget: String, CaseIterable, Sendable {
    /// Every event that a controller may send.
    case event
    /// Every command, and its return parameters.
    case command
    /// The stream of a UART or a socket, which contains the packets of one side.
    case stream
    /// ACL packets of one link, and their frames.
    case acl
    /// The LE signaling channel, and credit-based channels with their frames.
    case signaling
    /// Requests and commands to a GATT server.
    case server
    /// Responses to a GATT client with an open request, for many procedures in turn.
    case client
    /// The Security Manager in both roles, from any state of a pairing.
    case security
    /// Advertising data.
    case advertising
    /// Advertisements of sensors, and values of attributes.
    case sensors
    /// A capture of any format.
    case capture
    /// A capture whose links a host plays, in the role of either device.
    case trace
    /// A profile as JSON.
    case profile
    /// A whole host in a simulated world. Its controller also sends the packets of the input.
    case host
    /// The scans, advertisements, connection attempts and private addresses of a host in a simulated world.
    case discovery
    /// Pairings, bonds, out-of-band data and signed writes of two hosts in a simulated world.
    case bonds
    /// Managers of Core Bluetooth's API, their peripherals and their delegates, on hosts in a simulated world.
    case managers
    /// The files of a state directory, and exported bonds.
    case state
    /// Software controllers on one air, with the packets of their hosts.
    case controller

    /// Processes `input` as bytes from outside.
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
        case .sensors: fuzzSensors(input)
        case .capture: fuzzCapture(input)
        case .trace: fuzzTrace(input)
        case .profile: fuzzProfile(input)
        case .host: HostFuzzing.run(Script(input))
        case .discovery: DiscoveryFuzzing.run(Script(input))
        case .bonds: BondFuzzing.run(Script(input))
        case .managers: ManagerFuzzing.run(Script(input))
        case .state: fuzzState(input)
        case .controller: fuzzController(input)
        }
    }
}

extension FuzzTarget {
    /// Whether an input takes long, because it runs a whole world or uses files.
    package var isSlow: Bool {
        switch self {
        case .trace, .host, .discovery, .bonds, .managers, .state: true
        default: false
        }
    }

    /// The targets with a name: the name of a target, or of a protocol with one or more targets.
    package static func named(_ name: String) -> [FuzzTarget] {
        switch name {
        case "hci": [.event, .command, .stream, .acl, .controller]
        case "l2cap": [.acl, .signaling]
        case "att": [.server, .client]
        case "smp": [.security, .bonds]
        case "gap": [.advertising, .discovery]
        case "ad": [.advertising]
        default: FuzzTarget(rawValue: name).map { [$0] } ?? []
        }
    }
}

/// Traps if an invariant does not hold.
func require(_ condition: @autoclosure () -> Bool, _ text: @autoclosure () -> String) {
    if !condition() { fatalError(text()) }
}
