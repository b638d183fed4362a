import BLE
import BLEHCITransport
import BLEProfiles
import BluetoothTypes

/// The output of `ble controller`: the addresses on which it listens, and the hosts that connect and disconnect.
enum ControllerLine {
    case listening(ListeningAddress)
    case happened(ControllerServer.Event)

    var text: String {
        switch self {
        case .listening(let address): "listening on \(address)"
        case .happened(.connected(let connection)):
            "\(connection.number): a host has connected to \(connection.listener); its controller is \(connection.address)"
        case .happened(.disconnected(let connection, let error)): "\(connection.number): \(error.ofHost)"
        case .happened(.befell(let connection, .silent)): "\(connection.number): the controller has fallen silent"
        case .happened(.befell(let connection, .hardwareError)):
            "\(connection.number): the controller has had a hardware error"
        case .happened(.befell(let connection, .vanished)): "\(connection.number): the controller has vanished"
        case .happened(.airDied): "the air has failed: all packets are lost"
        case .happened(.refused(let listener)):
            "a host at \(listener) was turned away: there are \(ControllerServer.connectionLimit) already"
        case .happened(.addressInUse(let listener, let address)):
            "a host at \(listener) was turned away: the controller \(address) has a host already"
        case .happened(.notRecorded(let connection, let error)): "\(connection.number): not recorded: \(error)"
        }
    }

    var json: JSON {
        switch self {
        case .listening(let address): ["event": "listening", "listener": .string("\(address)")]
        case .happened(.connected(let connection)): ControllerLine.json("connected", connection)
        case .happened(.disconnected(let connection, let error)):
            ControllerLine.json("disconnected", connection, reason: error.ofHost)
        case .happened(.befell(let connection, let mishap)): ControllerLine.json(mishap.rawValue, connection)
        case .happened(.airDied): ["event": "airDied"]
        case .happened(.refused(let listener)): ["event": "refused", "listener": .string("\(listener)")]
        case .happened(.addressInUse(let listener, let address)):
            .object(
                [.event("addressInUse")] + .peer(address)
                    + [JSON.Member(key: "listener", value: .string("\(listener)"))]
            )
        case .happened(.notRecorded(let connection, let error)):
            ControllerLine.json("notRecorded", connection, reason: "\(error)")
        }
    }

    private static func json(_ event: String, _ connection: ControllerServer.Connection, reason: String? = nil) -> JSON
    {
        var members: [JSON.Member] = [
            .init(key: "event", value: .string(event)),
            .init(key: "controller", value: .integer(connection.number)),
            .init(key: "address", value: .string("\(connection.address)")),
            .init(key: "addressType", value: .string(connection.address.typeName)),
            .init(key: "listener", value: .string("\(connection.listener)")),
        ]
        if let reason { members.append(.init(key: "reason", value: .string(reason))) }
        return .object(members)
    }
}

extension TransportError {
    /// A description of the error, seen from the controller's end.
    fileprivate var ofHost: String {
        switch self {
        case .closedByPeer: "the host has disconnected"
        case .brokenStream(let octet):
            "the host was disconnected: it sent 0x\(String(octet, radix: 16)) instead of the start of an H4 packet"
        case .overflow: "the host was disconnected: it does not read"
        default: "the host was lost: \(self)"
        }
    }
}
