import ArgumentParser
import BLE
import BLEProfiles
import BluetoothTypes

struct Sync: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync",
        abstract: "Receive the periodic advertising of a device.",
        discussion: """
            Scans for the device and for the identifier of its advertising set, unless both are given. Then receives its \
            train until the count is reached or the duration is over, or until it is stopped. A train that is lost is \
            searched for again.
            """
    )

    @OptionGroup var options: GlobalOptions

    @Argument(
        help: "The device: its address, its name, or service:UUID for the first that advertises the service.",
        transform: { try Target(argument: $0) }
    )
    var target: Target

    @Option(
        help: ArgumentHelp("The identifier of the advertising set, 0 to 15 (default: the first found).", valueName: "n")
    )
    var sid: UInt8?

    @Option(help: ArgumentHelp("How many events may be left out after one that was received.", valueName: "n"))
    var skip: UInt16 = 0

    @Option(
        help: ArgumentHelp("The time without an event after which the train is lost (default: 10).", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var lostAfter: Seconds?

    @Option(help: ArgumentHelp("How many events to wait for.", valueName: "n"))
    var count: Int?

    @Option(
        help: ArgumentHelp("How long to receive.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var duration: Seconds?

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count is 1 or more") }
        if let sid, sid > 15 { throw ValidationError("--sid is 0 to 15") }
        if skip > 499 { throw ValidationError("--skip is 0 to 499") }
    }

    func run() async throws {
        let command = self
        try await options.withAdapter { adapter in
            let request = try await command.find(with: adapter.central)
            try await command.receive(request, with: adapter.central)
        }
    }

    /// Finds the address and the advertising set of the target.
    private func find(with central: Central) async throws -> PeriodicTrainRequest {
        let (target, sid) = (target, sid)
        let found = try await within(options.patience.duration) { () async throws -> PeriodicTrainRequest in
            for try await advertisement in central.scan() {
                guard target.matches(advertisement.address, advertisement.data), !advertisement.isConnectable,
                    let identifier = advertisement.advertisingSetIdentifier, sid.map({ $0 == identifier }) ?? true
                else { continue }
                let address = advertisement.privateAddress ?? advertisement.address
                return PeriodicTrainRequest(address: address, sid: identifier)
            }
            try Task.checkCancellation()
            throw ToolError.scanEnded
        }
        guard var request = found else { throw ToolError.notSeen(target, options.patience) }
        request.skip = skip
        if let lostAfter { request.timeout = lostAfter.duration }
        return request
    }

    private func receive(_ request: PeriodicTrainRequest, with central: Central) async throws {
        let (limit, isJSON) = (count, options.output.json)
        var received = 0
        do {
            let result: Int? = try await within(duration?.duration) {
                var count = 0
                for try await event in central.periodicAdvertising(request) {
                    let line = TrainLine(request: request, event: event)
                    if isJSON {
                        try Output.standard.json(line.json)
                    } else {
                        try Output.standard.line(line.text)
                    }
                    if case .received = event { count += 1 }
                    if count == limit { break }
                }
                try Task.checkCancellation()
                return count
            }
            received = result ?? 0
            if result == nil, let count, let duration { throw ToolError.tooFew(received, of: count, duration) }
        } catch  where Task.isCancelled && count == nil && duration == nil && !(error is OutputError) {
            // Cancellation is the normal end without a limit.
        }
    }
}

/// An event of a train as `ble sync` shows it.
struct TrainLine {
    let request: PeriodicTrainRequest
    let event: PeriodicAdvertisingEvent

    var text: String {
        switch event {
        case .synchronized(let train):
            "synchronized with \(request.address), set \(request.sid): every \(train.interval), \(train.phy)"
        case .received(let advertisement):
            "\(advertisement.rssi.map(String.init) ?? "?") dBm  \(advertisement.data.bytes.hexadecimal)"
                + (advertisement.isTruncated ? "  (truncated)" : "")
        case .lost: "lost; searching again"
        case .eventsDropped(let count): "\(count) events were dropped"
        }
    }

    var json: JSON {
        let common: [JSON.Member] = [
            .init(key: "address", value: .string("\(request.address)")),
            .init(key: "addressType", value: .string(request.address.typeName)),
            .init(key: "sid", value: JSON(Int(request.sid))),
        ]
        let event: (String, [JSON.Member]) =
            switch event {
            case .synchronized(let train):
                (
                    "synchronized",
                    [
                        .init(key: "intervalMilliseconds", value: .decimal(train.interval / .milliseconds(1))),
                        .init(key: "phy", value: .string("\(train.phy)")),
                    ]
                )
            case .received(let advertisement):
                (
                    "periodicAdvertisement",
                    [
                        .init(key: "rssi", value: JSON(advertisement.rssi)),
                        .init(key: "txPower", value: JSON(advertisement.txPower)),
                        .init(key: "data", value: JSON(advertisement.data.bytes)),
                        .init(key: "truncated", value: .bool(advertisement.isTruncated)),
                    ]
                )
            case .lost: ("lost", [])
            case .eventsDropped(let count): ("eventsDropped", [.init(key: "count", value: JSON(count))])
            }
        return .object([.init(key: "event", value: .string(event.0))] + common + event.1)
    }
}
