import ArgumentParser
import BLE
import BLEProfiles
import BluetoothTypes

struct Subscribe: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscribe",
        abstract: "Connect to a peer and show the values that it notifies or indicates.",
        discussion: """
            Listens until the count is reached or the duration is over, or until it is stopped. If the output is read too \
            slowly, the oldest values are dropped. A line reports how many; they do not count.
            """
    )

    @OptionGroup var peer: PeerOptions

    @Argument(
        help: "The value to subscribe to: UUID, SERVICE/UUID or #HANDLE.",
        transform: { try CharacteristicSelector(argument: $0) }
    )
    var characteristic: CharacteristicSelector

    @Option(help: ArgumentHelp("How many values to wait for.", valueName: "n"))
    var count: Int?

    @Option(
        help: ArgumentHelp("How long to listen.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var duration: Seconds?

    @Flag(help: "Subscribe to indications if the characteristic has both.")
    var indications = false

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count is 1 or more") }
    }

    func run() async throws {
        let command = self
        try await peer.withPeer { try await command.listen(to: $0) }
    }

    private func listen(to peer: RemotePeripheral) async throws {
        let characteristic = try await peer.characteristic(characteristic)
        let format = try await peer.presentationFormat(of: characteristic)
        let subscription = try await peer.subscribe(
            to: characteristic,
            preferring: indications ? .indication : .notification
        )
        let printer = DeliveryPrinter(
            characteristic: characteristic.uuid,
            format: format,
            asJSON: self.peer.options.output.json
        )
        let limit = count
        do {
            let isDone: Bool? = try await within(duration?.duration) {
                for try await delivery in subscription where try printer.print(delivery) == limit { return true }
                try Task.checkCancellation()
                throw ToolError.deliveriesEnded
            }
            if isDone == nil, let count, let duration {
                throw ToolError.tooFew(printer.count, of: count, duration)
            }
        } catch  where Task.isCancelled && count == nil && duration == nil && !(error is OutputError) {
            // Cancellation is the normal end of a subscription without a limit.
        }
        await uncancelled { await subscription.cancel() }
    }
}
