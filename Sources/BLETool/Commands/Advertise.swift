import ArgumentParser
import BLE
import BLEProfiles
import BluetoothTypes
import Synchronization

struct Advertise: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "advertise",
        abstract: "Send periodic advertising with subevents, and print the responses.",
        discussion: """
            Advertises a name, and a periodic advertising train with responses (PAwR). Each --subevent-data is the data of \
            one subevent, from the first on, and is sent in each event of the train. Devices answer in the response slots, \
            as with ble sync --subevent N --respond SLOT:HEX. With --json, slots without a response are printed too. \
            With --connect, connects to a device that listens to a subevent and need not advertise, shows its services and \
            values as ble explore does, and ends.
            Advertises until the count is reached or the duration is over, or until it is stopped.
            Trains without subevents are defined by the profiles of ble serve.
            """
    )

    @OptionGroup var options: GlobalOptions

    @Option(help: "The name that is advertised.")
    var name = "ble advertise"

    @Option(
        help: ArgumentHelp("The time between two events of the train (default: all subevents).", valueName: "ms")
    )
    var interval: Int?

    @Option(help: ArgumentHelp("The number of subevents, 1 to 128.", valueName: "n"))
    var subevents = 1

    @Option(help: ArgumentHelp("The number of response slots of each subevent, 0 to 255.", valueName: "n"))
    var responseSlots = 4

    @Option(
        help: ArgumentHelp(
            "The time from the start of a subevent to its first response slot, in steps of 1.25 ms.",
            valueName: "ms"
        )
    )
    var slotDelay = 10.0

    @Option(
        help: ArgumentHelp(
            "The time from the start of a response slot to the start of the next, in steps of 0.125 ms.",
            valueName: "ms"
        )
    )
    var slotSpacing = 2.5

    @Option(
        help: ArgumentHelp("The data of the next subevent: up to 249 bytes. May be repeated.", valueName: "hex"),
        transform: { try [UInt8](argument: $0) }
    )
    var subeventData: [[UInt8]] = []

    @Option(
        help: ArgumentHelp("Connect to the device with this address in a subevent.", valueName: "subevent:address"),
        transform: { try SubeventDevice(argument: $0) }
    )
    var connect: SubeventDevice?

    @Flag(help: "Include the transmit power in each packet.")
    var includeTxPower = false

    @Option(help: ArgumentHelp("How many responses to wait for.", valueName: "n"))
    var count: Int?

    @Option(
        help: ArgumentHelp("How long to advertise.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var duration: Seconds?

    func validate() throws {
        guard (1...128).contains(subevents) else { throw ValidationError("--subevents is 1 to 128") }
        guard (0...255).contains(responseSlots) else { throw ValidationError("--response-slots is 0 to 255") }
        guard (1.25...317.5).contains(slotDelay) else { throw ValidationError("--slot-delay is 1.25 to 317.5 ms") }
        guard (0.25...31.875).contains(slotSpacing) else {
            throw ValidationError("--slot-spacing is 0.25 to 31.875 ms")
        }
        guard subeventData.count <= subevents else {
            throw ValidationError("--subevent-data is given \(subeventData.count) times for \(subevents) subevent(s)")
        }
        if let long = subeventData.first(where: { $0.count > PeriodicSubeventData.maximumLength }) {
            throw ValidationError(
                "--subevent-data has at most \(PeriodicSubeventData.maximumLength) bytes, not \(long.count)"
            )
        }
        if let connect, Int(connect.subevent) >= subevents {
            throw ValidationError("--connect names subevent \(connect.subevent), but --subevents is \(subevents)")
        }
        if let count, count < 1 { throw ValidationError("--count is 1 or more") }
        if let interval, interval < 8 { throw ValidationError("--interval is 8 ms or more") }
    }

    /// The train. Without --interval, its subevents follow each other without a pause.
    private var train: PeriodicAdvertisingConfiguration {
        let (delay, spacing) = (Self.microseconds(slotDelay, step: 1250), Self.microseconds(slotSpacing, step: 125))
        // A subevent is as long as its packets need, in steps of 1.25 ms.
        let length = max(7500, delay + spacing * responseSlots)
        let timing = PeriodicSubeventConfiguration(
            count: subevents,
            interval: .microseconds((length + 1249) / 1250 * 1250),
            responseSlotCount: responseSlots,
            responseSlotDelay: .microseconds(delay),
            responseSlotSpacing: .microseconds(spacing)
        )
        return PeriodicAdvertisingConfiguration(
            interval: interval.map { .milliseconds($0) } ?? timing.interval * subevents,
            includesTXPower: includeTxPower,
            subevents: timing
        )
    }

    private static func microseconds(_ milliseconds: Double, step: Int) -> Int {
        Int(milliseconds * 1000) / step * step
    }

    func run() async throws {
        let command = self
        let responses = ResponseCount()
        try await options.withAdapter { adapter in
            do {
                let isDone: Void? = try await within(command.duration?.duration) {
                    try await command.advertise(on: adapter, counting: responses)
                    try Task.checkCancellation()
                }
                if isDone == nil, let count = command.count, let duration = command.duration {
                    throw ToolError.tooFew(responses.value, of: count, duration)
                }
            } catch
                where Task.isCancelled && command.count == nil && command.duration == nil
                && !(error is OutputError)
            {
                // Cancellation is the normal end without a limit.
            }
        }
    }

    private func advertise(on adapter: Adapter, counting responses: ResponseCount) async throws {
        let train = train
        let advertising = try await adapter.peripheral.startAdvertising(
            AdvertisementConfiguration(
                isConnectable: false,
                isScannable: false,
                advertisingData: AdvertisingData([.completeLocalName(name)]),
                periodic: train
            )
        )
        do {
            let events = try await advertising.subeventEvents()
            let address = try await adapter.information.identityAddress
            try SubeventLine.ready(address, train).print(asJSON: options.output.json)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await exchange(events, advertising, responses) }
                if let connect { group.addTask { try await explore(connect, advertising) } }
                // The command ends with the first of them.
                defer { group.cancelAll() }
                try await group.next()
            }
        } catch {
            await uncancelled { await advertising.stop() }
            throw error
        }
        await uncancelled { await advertising.stop() }
    }

    /// Connects to a device in a subevent, and shows its services and values.
    private func explore(_ device: SubeventDevice, _ advertising: AdvertisingSet) async throws {
        let peer = try await advertising.connect(
            to: device.address,
            inSubevent: device.subevent,
            timeout: options.patience.duration
        )
        do {
            try SubeventLine.explored(try await Exploration(of: peer)).print(asJSON: options.output.json)
        } catch {
            await uncancelled { await peer.disconnect() }
            throw error
        }
        await uncancelled { await peer.disconnect() }
    }

    /// Answers requests for data until enough responses have been received.
    private func exchange(
        _ events: Events<PeriodicSubeventEvent>,
        _ advertising: AdvertisingSet,
        _ responses: ResponseCount
    ) async throws {
        let slots = 0..<UInt8(responseSlots)
        for await event in events {
            try SubeventLine.event(event).print(asJSON: options.output.json)
            switch event {
            case .dataRequested(let subevents):
                let data = subevents.filter { $0 < subeventData.count }.map { subevent in
                    PeriodicSubeventData(
                        AdvertisingData(decoding: subeventData[Int(subevent)]),
                        subevent: subevent,
                        responseSlots: slots
                    )
                }
                if !data.isEmpty { try await advertising.send(data) }
            case .response(let response):
                guard response.outcome != .failed else { continue }
                if responses.increment() == count { return }
            case .notSent, .eventsDropped: break
            }
        }
        try Task.checkCancellation()
        throw BLEError.closed
    }
}

/// The number of responses that were received.
private final class ResponseCount: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .relaxed) }

    /// - Returns: the new number.
    func increment() -> Int { count.wrappingAdd(1, ordering: .relaxed).newValue }
}
