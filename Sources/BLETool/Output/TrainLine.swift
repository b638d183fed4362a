import BLE
import BLEProfiles
import BluetoothTypes
import Synchronization

/// An event of a train as `ble sync` shows it.
struct TrainLine {
    enum Event {
        case train(PeriodicAdvertisingEvent, isTransferred: Bool)
        case transferred(to: DeviceAddress, serviceData: UInt16)
        case received(TransferredTrain)
    }

    let request: PeriodicTrainRequest
    let event: Event

    private var name: String { "\(request.address), set \(request.sid)" }

    var text: String {
        switch event {
        case .train(.synchronized(let train), _):
            "synchronized with \(name): every \(train.interval), \(train.phy)"
                + (train.subevents.map { ", \($0.count) subevents" } ?? "")
        case .train(.received(let advertisement), _):
            (advertisement.place?.subevent.map { "subevent \($0): " } ?? "")
                + "\(advertisement.rssi.map(String.init) ?? "?") dBm  \(advertisement.data.bytes.hexadecimal)"
                + (advertisement.isTruncated ? "  (truncated)" : "")
        case .train(.missed(let place), _): "subevent \(place.subevent ?? 0): no packet received"
        case .train(.lost, isTransferred: true): "lost; waiting for another transfer"
        case .train(.lost, isTransferred: false): "lost; searching again"
        case .train(.eventsDropped(let count), _): "\(count) events were dropped"
        case .transferred(let peer, let serviceData): "transferred to \(peer), service data \(serviceData)"
        case .received(let transferred):
            "\(transferred.peer) transferred \(name), service data \(transferred.serviceData): "
                + "every \(transferred.train.interval), \(transferred.train.phy)"
        }
    }

    var json: JSON {
        let common: [JSON.Member] = [
            .init(key: "address", value: .string("\(request.address)")),
            .init(key: "addressType", value: .string(request.address.typeName)),
            .init(key: "sid", value: JSON(Int(request.sid))),
        ]
        let (name, members) = event.members
        return .object([.init(key: "event", value: .string(name))] + common + members)
    }
}

extension TrainLine.Event {
    /// The name of the event in JSON, and its own members.
    fileprivate var members: (String, [JSON.Member]) {
        switch self {
        case .train(.synchronized(let train), _): ("synchronized", Self.members(of: train))
        case .train(.received(let advertisement), _):
            (
                "periodicAdvertisement",
                [
                    .init(key: "rssi", value: JSON(advertisement.rssi)),
                    .init(key: "txPower", value: JSON(advertisement.txPower)),
                    .init(key: "data", value: JSON(advertisement.data.bytes)),
                    .init(key: "truncated", value: .bool(advertisement.isTruncated)),
                ] + (advertisement.place.map { Self.members(of: $0) } ?? [])
            )
        case .train(.missed(let place), _): ("missed", Self.members(of: place))
        case .train(.lost, _): ("lost", [])
        case .train(.eventsDropped(let count), _): ("eventsDropped", [.init(key: "count", value: JSON(count))])
        case .transferred(let peer, let serviceData):
            (
                "transferred",
                [
                    .init(key: "to", value: .string("\(peer)")),
                    .init(key: "serviceData", value: JSON(Int(serviceData))),
                ]
            )
        case .received(let transferred):
            (
                "transferReceived",
                [
                    .init(key: "from", value: .string("\(transferred.peer)")),
                    .init(key: "serviceData", value: JSON(Int(transferred.serviceData))),
                ] + Self.members(of: transferred.train)
            )
        }
    }

    private static func members(of train: PeriodicTrain) -> [JSON.Member] {
        [
            .init(key: "intervalMilliseconds", value: .decimal(train.interval / .milliseconds(1))),
            .init(key: "phy", value: .string("\(train.phy)")),
        ] + (train.subevents.map { [.init(key: "subevents", value: JSON($0.count))] } ?? [])
    }

    private static func members(of place: PeriodicPlace) -> [JSON.Member] {
        [
            .init(key: "eventCounter", value: JSON(Int(place.event))),
            .init(key: "subevent", value: JSON(place.subevent.map(Int.init))),
        ]
    }
}

/// Prints the events of trains, and counts the data that was received.
final class TrainPrinter: Sendable {
    private let limit: Int?
    private let asJSON: Bool
    private let received = Atomic(0)

    init(limit: Int?, asJSON: Bool) {
        self.limit = limit
        self.asJSON = asJSON
    }

    var count: Int { received.load(ordering: .relaxed) }

    /// Prints an event of a train.
    ///
    /// - Returns: whether the limit is reached.
    func print(
        _ event: PeriodicAdvertisingEvent,
        of request: PeriodicTrainRequest,
        isTransferred: Bool = false
    ) throws -> Bool {
        try write(.train(event, isTransferred: isTransferred), of: request)
        guard case .received = event else { return false }
        return received.wrappingAdd(1, ordering: .relaxed).newValue == limit
    }

    func write(_ event: TrainLine.Event, of request: PeriodicTrainRequest) throws {
        let line = TrainLine(request: request, event: event)
        if asJSON { try Output.standard.json(line.json) } else { try Output.standard.line(line.text) }
    }

    /// Prints an event of the transfers of a device.
    func print(_ event: TransferredTrainEvent) throws {
        switch event {
        case .ready: try write("ready", [], text: "waiting for a transfer")
        case .received(let train): try write(.received(train), of: train.request)
        case .failed(let transfer):
            try write(
                "transferFailed",
                [
                    .init(key: "from", value: .string("\(transfer.peer)")),
                    .init(key: "serviceData", value: JSON(Int(transfer.serviceData))),
                    .init(key: "reason", value: .string("\(transfer.status)")),
                ],
                text: "\(transfer.peer) transferred a train that is not received: \(transfer.status)"
            )
        case .eventsDropped(let count):
            try write(
                "eventsDropped",
                [.init(key: "count", value: JSON(count))],
                text: "\(count) transfers were dropped"
            )
        }
    }

    private func write(_ name: String, _ members: [JSON.Member], text: String) throws {
        guard asJSON else { return try Output.standard.line(text) }
        try Output.standard.json(.object([.init(key: "event", value: .string(name))] + members))
    }
}
