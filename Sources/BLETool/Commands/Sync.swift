import ArgumentParser
import BLE
import BLEProfiles
import BluetoothTypes

struct Sync: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync",
        abstract: "Receive the periodic advertising of devices.",
        discussion: """
            Scans for the devices and for the identifiers of their advertising sets. Then receives their trains until the \
            count is reached or the duration is over, or until it is stopped. A train that is lost is searched for again.
            With --transferred, connects to the device and receives the trains that it transfers, one at a time, without \
            scanning for them. With --transfer-to, connects to another device first, and transfers the synchronization to \
            it each time that the train is found.
            With --subevent, receives subevents of trains with responses (PAwR), which ble advertise sends. With --respond, \
            answers each packet that has data.
            """
    )

    @OptionGroup var options: GlobalOptions

    @OptionGroup var finding: FindOptions

    @Argument(
        help: "A device: its address, its name, or service:UUID for the first that advertises the service.",
        transform: { try Target(argument: $0) }
    )
    var targets: [Target]

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

    @Flag(help: "Connect to the device, and receive the trains that it transfers.")
    var transferred = false

    @Option(
        help: ArgumentHelp("The device to transfer the synchronization to.", valueName: "device"),
        transform: { try Target(argument: $0) }
    )
    var transferTo: Target?

    @Option(help: ArgumentHelp("A value for the app of that device, 0 to 65535.", valueName: "n"))
    var serviceData: UInt16 = 0

    @Option(help: ArgumentHelp("A subevent to receive, 0 to 127. May be repeated.", valueName: "n"))
    var subevent: [UInt8] = []

    @Option(
        help: ArgumentHelp(
            "The response to each packet with data: a response slot and up to 247 bytes.",
            valueName: "slot:hex"
        ),
        transform: { try SlotResponse(argument: $0) }
    )
    var respond: SlotResponse?

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count is 1 or more") }
        if let sid, sid > 15 { throw ValidationError("--sid is 0 to 15") }
        if skip > 499 { throw ValidationError("--skip is 0 to 499") }
        if transferred, targets.count > 1 { throw ValidationError("--transferred takes one device") }
        if transferred, sid != nil {
            throw ValidationError("--transferred excludes --sid: the device selects the train")
        }
        if subevent.contains(where: { $0 > 127 }) { throw ValidationError("--subevent is 0 to 127") }
        if respond != nil, subevent.isEmpty { throw ValidationError("--respond needs --subevent") }
        if let respond, respond.data.count > 247 {
            throw ValidationError("a response has at most 247 bytes, not \(respond.data.count)")
        }
        if transferred, transferTo != nil { throw ValidationError("--transferred excludes --transfer-to") }
    }

    func run() async throws {
        let command = self
        try await options.withAdapter { adapter in
            if command.transferred {
                try await command.withConnection(to: command.targets[0], adapter.central) { peer in
                    try await command.receiveTransfers(of: peer, with: adapter.central)
                }
            } else if let transferTo = command.transferTo {
                try await command.withConnection(to: transferTo, adapter.central) { peer in
                    let requests = try await command.findTrains(with: adapter.central)
                    try await command.receive(requests, with: adapter.central, transferringTo: peer)
                }
            } else {
                let requests = try await command.findTrains(with: adapter.central)
                try await command.receive(requests, with: adapter.central)
            }
        }
    }

    // MARK: Finding

    /// Finds the addresses and the advertising sets of the targets.
    private func findTrains(with central: Central) async throws -> [PeriodicTrainRequest] {
        var requests: [PeriodicTrainRequest] = []
        for target in targets { requests.append(try await findTrain(of: target, with: central)) }
        return requests
    }

    private func findTrain(of target: Target, with central: Central) async throws -> PeriodicTrainRequest {
        let sid = sid
        var request = try await target.find(with: central, within: options.patience, finding) { advertisement in
            advertisement.possibleTrain.flatMap { sid == nil || sid == $0.sid ? $0 : nil }
        }
        request.skip = skip
        request.subevents = subevent
        if let lostAfter { request.timeout = lostAfter.duration }
        return request
    }

    /// Connects to a device for `body`, and disconnects whatever happens.
    private func withConnection(
        to target: Target,
        _ central: Central,
        _ body: @escaping @Sendable (RemotePeripheral) async throws -> Void
    ) async throws {
        let address = try await target.findConnectable(with: central, within: options.patience, finding)
        let peer = try await central.connect(to: address, timeout: options.patience.duration)
        do {
            try await body(peer)
        } catch {
            await uncancelled { await peer.disconnect() }
            throw error
        }
        await uncancelled { await peer.disconnect() }
    }

    // MARK: Receiving

    private func receive(
        _ requests: [PeriodicTrainRequest],
        with central: Central,
        transferringTo peer: RemotePeripheral? = nil
    ) async throws {
        let serviceData = serviceData
        try await receive { printer in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for request in requests {
                    group.addTask {
                        var timing: PeriodicSubeventTiming?
                        for try await event in central.periodicAdvertising(request) {
                            try await respond(to: event, with: central)
                            if try printer.print(event, of: request) { return try await awaitSlots(timing) }
                            guard case .synchronized(let train) = event else { continue }
                            timing = train.subevents
                            guard let peer else { continue }
                            try await peer.transferSynchronization(with: request, serviceData: serviceData)
                            try printer.write(.transferred(to: peer.address, serviceData: serviceData), of: request)
                        }
                    }
                }
                // The first that ends has reached the count, has failed, or was cancelled.
                defer { group.cancelAll() }
                try await group.next()
            }
        }
    }

    /// Responds to a packet, if the command has a response. A response that cannot be sent now is only reported.
    private func respond(to event: PeriodicAdvertisingEvent, with central: Central) async throws {
        guard let respond, case .received(let packet) = event, packet.data.length > 0, packet.place?.subevent != nil
        else {
            return
        }
        do throws(BLEError) {
            try await central.respond(AdvertisingData(decoding: respond.data), to: packet, slot: respond.slot)
        } catch {
            switch error {
            // The response was too late, or the train was lost in the meantime. It is searched for again.
            case .controllerFailed, .invalidArgument, .notReady:
                Output.complain("no response in slot \(respond.slot): \(error)")
            default: throw error
            }
        }
    }

    /// Waits until the last response must have been sent.
    private func awaitSlots(_ timing: PeriodicSubeventTiming?) async throws {
        if respond != nil, let timing { try await Task.sleep(for: timing.interval) }
    }

    private func receiveTransfers(of peer: RemotePeripheral, with central: Central) async throws {
        var parameters = PeriodicSyncTransferParameters(skip: skip, subevents: subevent)
        if let lostAfter { parameters.timeout = lostAfter.duration }
        try await receive { [parameters] printer in
            for try await event in peer.transferredTrains(parameters) {
                try printer.print(event)
                guard case .received(let train) = event else { continue }
                for await event in train.events {
                    try await respond(to: event, with: central)
                    if try printer.print(event, of: train.request, isTransferred: true) {
                        return try await awaitSlots(train.train.subevents)
                    }
                }
            }
        }
    }

    /// Receives until the count is reached, the duration is over, or the command is stopped.
    private func receive(_ body: @escaping @Sendable (TrainPrinter) async throws -> Void) async throws {
        let printer = TrainPrinter(limit: count, asJSON: options.output.json)
        do {
            let isDone: Void? = try await within(duration?.duration) {
                try await body(printer)
                try Task.checkCancellation()
            }
            if isDone == nil, let count, let duration { throw ToolError.tooFew(printer.count, of: count, duration) }
        } catch  where Task.isCancelled && count == nil && duration == nil && !(error is OutputError) {
            // Cancellation is the normal end without a limit.
        }
    }
}
