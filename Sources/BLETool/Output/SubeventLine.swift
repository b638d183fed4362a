import BLE
import BLEProfiles
import BluetoothTypes

/// An event of `ble advertise`.
enum SubeventLine {
    case ready(DeviceAddress, PeriodicAdvertisingConfiguration)
    case event(PeriodicSubeventEvent)
    /// The device to which the command has connected.
    case explored(Exploration)

    /// The text; nil for an event that only JSON shows.
    var text: String? {
        switch self {
        case .ready(let address, let train):
            "\(address) advertises a train: every \(train.interval), \(train.subevents?.count ?? 0) subevents with "
                + "\(train.subevents?.responseSlotCount ?? 0) response slots each"
        case .event(.response(let response)):
            switch response.outcome {
            case .failed: nil
            case .received, .truncated:
                "subevent \(response.subevent), slot \(response.slot): \(response.rssi.map(String.init) ?? "?") dBm  "
                    + response.data.bytes.hexadecimal + (response.outcome == .truncated ? "  (truncated)" : "")
            }
        case .event(.dataRequested): nil
        case .event(.notSent(let subevent)): "subevent \(subevent): the packet was not sent"
        case .event(.eventsDropped(let count)): "\(count) events were dropped"
        case .explored(let exploration): exploration.tree.joined(separator: "\n")
        }
    }

    var json: JSON {
        let (name, members) = members
        return .object([.init(key: "event", value: .string(name))] + members)
    }

    private var members: (String, [JSON.Member]) {
        switch self {
        case .ready(let address, let train):
            (
                "ready",
                [
                    .init(key: "address", value: .string("\(address)")),
                    .init(key: "addressType", value: .string(address.typeName)),
                    .init(key: "intervalMilliseconds", value: .decimal(train.interval / .milliseconds(1))),
                    .init(key: "subevents", value: JSON(train.subevents?.count)),
                    .init(key: "responseSlots", value: JSON(train.subevents?.responseSlotCount)),
                ]
            )
        case .event(.dataRequested(let subevents)):
            ("dataRequested", [.init(key: "subevents", value: .array(subevents.map { JSON(Int($0)) }))])
        case .event(.response(let response)):
            (
                "response",
                [
                    .init(key: "subevent", value: JSON(Int(response.subevent))),
                    .init(key: "slot", value: JSON(Int(response.slot))),
                    .init(key: "outcome", value: .string("\(response.outcome)")),
                    .init(key: "rssi", value: JSON(response.rssi)),
                    .init(key: "txPower", value: JSON(response.txPower)),
                    .init(key: "data", value: JSON(response.data.bytes)),
                ]
            )
        case .event(.notSent(let subevent)): ("notSent", [.init(key: "subevent", value: JSON(Int(subevent)))])
        case .event(.eventsDropped(let count)): ("eventsDropped", [.init(key: "count", value: JSON(count))])
        case .explored(let exploration): ("explored", [.init(key: "device", value: exploration.json)])
        }
    }

    func print(asJSON: Bool) throws {
        if asJSON { try Output.standard.json(json) } else if let text { try Output.standard.line(text) }
    }
}
