import BLE
import BLEHCITransport
import BluetoothTesting

/// A device of a simulation, which is a peripheral to some devices and a central to others.
final class Station: Sendable {
    static let service: BluetoothUUID = "5C3A0001-0000-4000-8000-00805F9B34FB"
    /// Stored by the server; read and written with values of one length.
    static let stored: BluetoothUUID = "5C3A0002-0000-4000-8000-00805F9B34FB"
    /// Answered by the app, sometimes late and sometimes with an error.
    static let handled: BluetoothUUID = "5C3A0003-0000-4000-8000-00805F9B34FB"
    /// Written without response.
    static let commands: BluetoothUUID = "5C3A0004-0000-4000-8000-00805F9B34FB"
    static let notified: BluetoothUUID = "5C3A0005-0000-4000-8000-00805F9B34FB"
    static let indicated: BluetoothUUID = "5C3A0006-0000-4000-8000-00805F9B34FB"

    let index: Int
    let device: Device
    let adapter: Adapter
    let address: DeviceAddress
    let storedLength: Int
    let ledger: Ledger
    private let confined: LoopConfined<State>
    private var state: State { confined.value }
    var published: PublishedService? { state.published }
    /// The services of L2CAP channels, if the station has some.
    var channels: ChannelService? { state.channels }
    /// The advertisement with a train, if the station has one.
    var trainSet: AdvertisingSet? { state.train }

    private final class State {
        var published: PublishedService?
        var advertising: AdvertisingSet?
        var channels: ChannelService?
        var train: AdvertisingSet?
    }

    init(index: Int, device: Device, adapter: Adapter, ledger: Ledger, storedLength: Int) async throws {
        self.index = index
        self.device = device
        self.adapter = adapter
        self.ledger = ledger
        self.storedLength = storedLength
        confined = LoopConfined(State(), to: ledger.world.loop)
        address = try await adapter.information.identityAddress
    }

    var name: String { device.name }

    func handle(of uuid: BluetoothUUID) -> AttributeHandle? {
        published?.characteristics.first { $0.uuid == uuid }?.valueHandle
    }

    /// Publishes the service, and records the values that clients write.
    func publish(_ world: World, random: SeededGenerator) async throws {
        let definition = ServiceDefinition(
            uuid: Station.service,
            characteristics: [
                CharacteristicDefinition(
                    uuid: Station.stored,
                    properties: [.read, .write],
                    permissions: [.read, .write],
                    value: .stored(ledger.makeValue(of: Station.stored, length: storedLength))
                ),
                CharacteristicDefinition(
                    uuid: Station.handled,
                    properties: [.read, .write],
                    permissions: [.read, .write],
                    value: .handled
                ),
                CharacteristicDefinition(
                    uuid: Station.commands,
                    properties: .writeWithoutResponse,
                    permissions: .write,
                    value: .stored([])
                ),
                CharacteristicDefinition(
                    uuid: Station.notified,
                    properties: .notify,
                    permissions: [],
                    value: .stored([])
                ),
                CharacteristicDefinition(
                    uuid: Station.indicated,
                    properties: .indicate,
                    permissions: [],
                    value: .stored([])
                ),
            ]
        )
        let dice = Dice(random)
        let answer = ledger.makeValue(of: Station.handled, length: 20)
        state.published = try await adapter.peripheral.publish([definition]) { _, access in
            if dice.chance(0.5) { try? await world.sleep(for: .milliseconds(dice.number(in: 0...300))) }
            if dice.chance(0.2) { throw ATTErrorCode.unlikelyError }
            if case .read(_, let offset) = access { return Array(answer.dropFirst(offset)) }
            return []
        }.first
        _ = await adapter.host.observeServer { [self] event in
            guard case .access(let client, .written(let write, let isCommand)) = event else { return }
            let place = "\(name), written by client \(client)"
            if isCommand {
                let stream = Ledger.Stream(
                    sender: index,
                    characteristic: Station.commands,
                    client: client
                )
                ledger.expectNext(write.value, in: stream, where: place)
            } else if write.handle == handle(of: Station.stored), write.value.count == storedLength {
                let stream = Ledger.Stream(sender: index, characteristic: Station.stored)
                ledger.expectOnce(write.value, in: stream, where: place)
            }
        }
    }

    /// Starts what the world's traits require.
    func prepare(_ traits: WorldTraits, supportsTrains: Bool) async throws {
        if traits.usesChannels { state.channels = try await publishChannels(traits.split()) }
        let dice = traits.split()
        if traits.usesTrains, supportsTrains, dice.chance(0.7) { state.train = try await startTrain(dice) }
    }

    func close() async {
        await state.channels?.echo.close()
        await state.channels?.sink.close()
        await state.train?.stop()
        await state.advertising?.stop()
        await adapter.close()
        (state.channels, state.train) = (nil, nil)
    }

    /// Advertises until ``close()``.
    func advertise(every interval: Duration) async throws {
        state.advertising = try await adapter.peripheral.startAdvertising(
            AdvertisementConfiguration(
                interval: interval,
                advertisingData: AdvertisingData([.serviceUUIDs([Station.service], isComplete: true)]),
                scanResponseData: AdvertisingData([.completeLocalName(name)])
            )
        )
    }

    /// Sends numbered values to the subscribers until the task is cancelled.
    func sendValues(_ world: World, _ dice: Dice) async {
        while !Task.isCancelled {
            try? await world.sleep(for: .milliseconds(dice.number(in: 5...400)))
            let isIndication = dice.chance(0.3)
            let uuid = isIndication ? Station.indicated : Station.notified
            guard let handle = handle(of: uuid) else { return }
            let value = ledger.makeValue(of: uuid, length: dice.number(in: 4...20))
            let peripheral = adapter.peripheral
            _ = await ledger.operation("\(name) sends a value", within: .seconds(150)) {
                if isIndication {
                    try await peripheral.indicate(value, of: handle)
                } else {
                    try await peripheral.notify(value, of: handle)
                }
            }
        }
    }
}
