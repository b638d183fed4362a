import BLE
import BLEProfiles
import BluetoothTypes

/// The state of a connection, or a change of it, as `ble link` shows it.
enum LinkLine {
    /// The powers are nil if a device does not report them.
    case state(LinkInformation, own: LocalTransmitPower?, peer: TransmitPower?, rssi: Int?)
    case event(LinkEvent)

    var text: String {
        switch self {
        case .state(let link, let own, let peer, let rssi):
            [
                "\(link.peer) as the \(link.isCentral ? "peripheral" : "central")", Self.words(link.parameters),
                "sends on \(link.transmitPHY), receives on \(link.receivePHY)",
                "own power \(Self.words(own?.current)), peer's power \(Self.words(peer)), RSSI \(Self.dBm(rssi))",
            ].joined(separator: "; ")
        case .event(.parametersChanged(let parameters)): Self.words(parameters)
        case .event(.physChanged(let transmit, let receive)): "sends on \(transmit), receives on \(receive)"
        case .event(.transmitPowerChanged(let change)):
            "\(change.isOfPeer ? "peer's" : "own") power \(Self.words(change.power))"
                + (change.delta.map { ", \($0 < 0 ? "" : "+")\($0) dB" } ?? "")
        case .event(.pathLossZoneEntered(let report)):
            "path loss \(report.pathLoss.map { "\($0) dB" } ?? "not known"), \(report.zone) zone"
        case .event(.eventsDropped(let count)): "\(count) events were dropped"
        }
    }

    var json: JSON {
        let (name, members) = namedMembers
        return .object([.init(key: "event", value: .string(name))] + members)
    }

    private var namedMembers: (String, [JSON.Member]) {
        switch self {
        case .state(let link, let own, let peer, let rssi):
            (
                "link",
                [
                    .init(key: "peer", value: .string("\(link.peer)")),
                    .init(key: "role", value: .string(link.isCentral ? "central" : "peripheral")),
                ] + Self.members(link.parameters) + Self.members(link.transmitPHY, link.receivePHY) + [
                    .init(key: "transmitPower", value: JSON(own?.current.level)),
                    .init(key: "maximumTransmitPower", value: JSON(own?.maximumLevel)),
                    .init(key: "peerTransmitPower", value: JSON(peer?.level)),
                    .init(key: "rssi", value: JSON(rssi)),
                ]
            )
        case .event(.parametersChanged(let parameters)): ("parametersChanged", Self.members(parameters))
        case .event(.physChanged(let transmit, let receive)): ("physChanged", Self.members(transmit, receive))
        case .event(.transmitPowerChanged(let change)):
            (
                "transmitPowerChanged",
                [
                    .init(key: "device", value: .string(change.isOfPeer ? "peer" : "own")),
                    .init(key: "phy", value: .string("\(change.power.phy)")),
                    .init(key: "transmitPower", value: JSON(change.power.level)),
                    .init(key: "delta", value: JSON(change.delta)),
                    .init(key: "minimum", value: .bool(change.power.isMinimum)),
                    .init(key: "maximum", value: .bool(change.power.isMaximum)),
                ]
            )
        case .event(.pathLossZoneEntered(let report)):
            (
                "pathLossZoneEntered",
                [
                    .init(key: "pathLoss", value: JSON(report.pathLoss)),
                    .init(key: "zone", value: .string("\(report.zone)")),
                ]
            )
        case .event(.eventsDropped(let count)): ("eventsDropped", [.init(key: "count", value: JSON(count))])
        }
    }

    private static func members(_ parameters: NegotiatedConnectionParameters) -> [JSON.Member] {
        [
            .init(key: "intervalMilliseconds", value: .decimal(parameters.interval / .milliseconds(1))),
            .init(key: "latency", value: JSON(Int(parameters.latencyInEvents))),
            .init(
                key: "supervisionTimeoutMilliseconds",
                value: .decimal(parameters.supervisionTimeout / .milliseconds(1))
            ),
            .init(key: "subrateFactor", value: JSON(parameters.subrateFactor)),
            .init(key: "continuationNumber", value: JSON(parameters.continuationNumber)),
        ]
    }

    private static func members(_ transmit: PHY, _ receive: PHY) -> [JSON.Member] {
        [
            .init(key: "transmitPHY", value: .string("\(transmit)")),
            .init(key: "receivePHY", value: .string("\(receive)")),
        ]
    }

    private static func words(_ parameters: NegotiatedConnectionParameters) -> String {
        "interval \(parameters.interval), latency \(parameters.latencyInEvents), "
            + "supervision timeout \(parameters.supervisionTimeout), subrate factor \(parameters.subrateFactor), "
            + "continuation number \(parameters.continuationNumber)"
    }

    private static func words(_ power: TransmitPower?) -> String {
        let limit = power?.isMaximum == true ? " (maximum)" : power?.isMinimum == true ? " (minimum)" : ""
        return dBm(power?.level) + limit
    }

    private static func dBm(_ level: Int?) -> String { level.map { "\($0) dBm" } ?? "not known" }
}
