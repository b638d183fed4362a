import BLE
import Logging
import Synchronization

/// The commands for one device, in their order, and the connection to it while there is one.
actor CommandSession {
    private enum Event {
        case command(PendingCommand)
        /// The connection with this number was lost.
        case disconnected(UInt64)
        /// No command came since the timer with this number was started.
        case idle(UInt64)
        case end(DeviceCommandError)
    }

    /// A connection with its services and subscriptions.
    private struct Link {
        let number: UInt64
        let slot: DeviceSlot
        let peripheral: RemotePeripheral
        let observer: Task<Void, Never>
        var services: [RemoteService]?
        var subscriptions: [AttributeHandle: Subscription] = [:]
    }

    /// The greatest number of subscriptions on one device.
    static let subscriptionLimit = 32
    /// The greatest number of values of a subscription that wait. If more arrive, the oldest are dropped.
    private static let valueLimit = 256
    /// How long an attempt to connect may take. The time of the command usually ends before.
    private static let connectionTimeout = Duration.seconds(120)

    private let address: UInt64
    private let devices: DeviceTable
    private let idleTimeout: Duration
    private let logger: Logger
    private let events: AsyncStream<Event>
    private nonisolated let continuation: AsyncStream<Event>.Continuation
    private nonisolated let task = Mutex<Task<Void, Never>?>(nil)
    private var link: Link?
    private var lastNumber: UInt64 = 0

    init(address: UInt64, devices: DeviceTable, idleTimeout: Duration, logger: Logger) {
        self.address = address
        self.devices = devices
        self.idleTimeout = idleTimeout
        self.logger = logger
        // Commands are bounded by `DeviceCommands`; there are few other events.
        (events, continuation) = AsyncStream.makeStream()
    }

    /// Starts to perform commands.
    ///
    /// - Parameters:
    ///   - performed: is called after each command.
    ///   - mayEnd: is called when there is no connection; returns whether the session ends.
    nonisolated func start(
        performed: @escaping @Sendable (PendingCommand) -> Void,
        mayEnd: @escaping @Sendable () -> Bool
    ) {
        let task = Task { await self.run(performed, mayEnd) }
        self.task.withLock { $0 = task }
    }

    nonisolated func submit(_ command: PendingCommand) {
        continuation.yield(.command(command))
    }

    /// Ends the connection, after the commands that are finished now.
    nonisolated func end(_ error: DeviceCommandError) {
        continuation.yield(.end(error))
    }

    /// Waits until the session has ended.
    nonisolated func finished() async {
        await task.withLock { $0 }?.value
    }

    private func run(_ performed: (PendingCommand) -> Void, _ mayEnd: () -> Bool) async {
        var timer: Task<Void, Never>?
        for await event in events {
            timer?.cancel()
            switch event {
            case .command(let pending):
                if !pending.isFinished {
                    let operation = Task { await self.execute(pending) }
                    pending.cancelWhenFinished(operation)
                    await operation.value
                }
                performed(pending)
            case .disconnected(let number): if link?.number == number { await endLink() }
            case .idle(let number):
                if number == lastNumber, link?.subscriptions.isEmpty == true { await endLink() }
            case .end: await endLink()
            }
            if link == nil {
                if mayEnd() { break }
            } else if link?.subscriptions.isEmpty == true {
                timer = startTimer()
            }
        }
        timer?.cancel()
    }

    private func startTimer() -> Task<Void, Never> {
        lastNumber += 1
        return Task { [lastNumber, idleTimeout, continuation] in
            guard (try? await Task.sleep(for: idleTimeout)) != nil else { return }
            continuation.yield(.idle(lastNumber))
        }
    }

    // MARK: Commands

    private func execute(_ pending: PendingCommand) async {
        do throws(DeviceCommandError) {
            pending.finish(.success(try await perform(pending)))
        } catch {
            if error.meansOutdatedHandles { await forgetServices() }
            pending.finish(.failure(error))
        }
    }

    private func perform(_ pending: PendingCommand) async throws(DeviceCommandError) -> DeviceCommandOutcome {
        let command = pending.command
        switch command.action {
        case .disconnect:
            await endLink()
            return .done
        case .unsubscribe(let path):
            guard link != nil else { return .done }
            try await unsubscribe(from: path)
            return .done
        case .connect:
            _ = try await connected(command)
            return .done
        case .services: return .services(try await services(command))
        case .pair: return .paired(try await pair(command))
        case .unpair:
            try await unpair()
            return .done
        case .read(let path):
            let characteristic = try await characteristic(path, command)
            let peripheral = try await connected(command)
            let value = try await Self.translating { () async throws(BLEError) in
                try await peripheral.read(characteristic.valueHandle)
            }
            return .value(value, of: characteristic.uuid)
        case .write(let path, let value, let withResponse):
            let characteristic = try await characteristic(path, command)
            let peripheral = try await connected(command)
            try await Self.translating { () async throws(BLEError) in
                try await peripheral.write(
                    value,
                    to: characteristic.valueHandle,
                    kind: withResponse ? .withResponse : .withoutResponse
                )
            }
            return .done
        case .subscribe(let path):
            try await subscribe(to: path, command, pending.notified)
            return .done
        }
    }

    private static func translating<Result>(
        _ body: () async throws(BLEError) -> Result
    ) async throws(DeviceCommandError) -> Result {
        do throws(BLEError) {
            return try await body()
        } catch {
            throw DeviceCommandError(error)
        }
    }

    private func services(_ command: DeviceCommand) async throws(DeviceCommandError) -> [RemoteService] {
        let peripheral = try await connected(command)
        if let known = link?.services { return known }
        let services = try await Self.translating { () async throws(BLEError) in try await peripheral.discoverAll() }
        link?.services = services
        return services
    }

    private func characteristic(
        _ path: DeviceCommand.Path,
        _ command: DeviceCommand
    ) async throws(DeviceCommandError) -> RemoteCharacteristic {
        let services = try await services(command).filter { path.service == nil || $0.uuid == path.service }
        let found = services.flatMap(\.characteristics).filter { $0.uuid == path.characteristic }
        guard let characteristic = found.first else {
            throw DeviceCommandError(.notFound, "the device has no characteristic \(path.characteristic) there")
        }
        guard found.count == 1 else {
            let advice = path.service == nil ? "; name the service" : ""
            throw DeviceCommandError(.ambiguous, "\(found.count) characteristics are \(path.characteristic)\(advice)")
        }
        return characteristic
    }

    /// Forgets the services, whose handles have changed. The next command discovers them again.
    ///
    /// Subscriptions may have lost their handles too. So if there are any, the connection ends, and its subscribers are
    /// notified.
    private func forgetServices() async {
        link?.services = nil
        if link?.subscriptions.isEmpty == false { await endLink() }
    }

    // MARK: Pairing

    private func pair(_ command: DeviceCommand) async throws(DeviceCommandError) -> DeviceAddress {
        let link = try await connectedLink(command)
        let pairing = DevicePairing(peripheral: link.peripheral, adapter: link.slot.adapter, logger: logger)
        let identity = try await Self.translating { () async throws(BLEError) in try await pairing.perform() }
        await devices.readBonds(of: link.slot.adapterIndex)
        return identity
    }

    /// Ends the connection and its subscriptions, and removes the bonds of all adapters with the device.
    private func unpair() async throws(DeviceCommandError) {
        var addresses: Set<UInt64> = [address]
        // A pairing on the link may have revealed the identity address.
        if let link, let information = try? await link.peripheral.linkInformation {
            addresses.insert(information.identity.value)
        }
        await endLink()
        guard try await devices.removeBonds(of: address, bondedAs: addresses) else {
            throw DeviceCommandError(.notPaired, "no adapter has a bond with this address; use the identity address")
        }
    }

    // MARK: Subscriptions

    private func subscribe(
        to path: DeviceCommand.Path,
        _ command: DeviceCommand,
        _ notified: @escaping @Sendable (DeviceNotification) -> Void
    ) async throws(DeviceCommandError) {
        let characteristic = try await characteristic(path, command)
        let peripheral = try await connected(command)
        let handle = characteristic.valueHandle
        guard let link, link.subscriptions[handle] == nil else { return }
        guard link.subscriptions.count < Self.subscriptionLimit else {
            throw DeviceCommandError(.full, "the device has \(Self.subscriptionLimit) subscriptions; end some")
        }
        let subscription = try await Self.translating { () async throws(BLEError) in
            try await peripheral.subscribe(to: characteristic, bufferedValueLimit: Self.valueLimit)
        }
        self.link?.subscriptions[handle] = subscription
        Task { [address] in
            func notify(_ content: DeviceNotification.Content) {
                notified(DeviceNotification(address: address, characteristic: characteristic.uuid, content: content))
            }
            do throws(BLEError) {
                for try await value in subscription { notify(.value(value.value)) }
            } catch {
                notify(.ended(DeviceCommandError(error)))
            }
        }
    }

    private func unsubscribe(from path: DeviceCommand.Path) async throws(DeviceCommandError) {
        guard let services = link?.services else { return }
        let characteristics = services.filter { path.service == nil || $0.uuid == path.service }
            .flatMap(\.characteristics)
        for characteristic in characteristics where characteristic.uuid == path.characteristic {
            await link?.subscriptions.removeValue(forKey: characteristic.valueHandle)?.cancel()
        }
    }

    // MARK: The connection

    /// Returns the connected device, and connects if it is not.
    private func connected(_ command: DeviceCommand) async throws(DeviceCommandError) -> RemotePeripheral {
        try await connectedLink(command).peripheral
    }

    /// Returns the link to the device, and connects if there is none.
    private func connectedLink(_ command: DeviceCommand) async throws(DeviceCommandError) -> Link {
        if let link {
            if await link.peripheral.isConnected { return link }
            await endLink()
        }
        let (slot, peripheral) = try await connect(command)
        lastNumber += 1
        let observer = Task { [continuation, lastNumber] in
            guard (try? await peripheral.disconnection()) != nil else { return }
            continuation.yield(.disconnected(lastNumber))
        }
        let newLink = Link(number: lastNumber, slot: slot, peripheral: peripheral, observer: observer)
        link = newLink
        logger.debug("connected for commands", metadata: ["device": "\(slot.device)"])
        return newLink
    }

    /// Connects the device, by another adapter if one holds no further connection.
    private func connect(
        _ command: DeviceCommand
    ) async throws(DeviceCommandError) -> (DeviceSlot, RemotePeripheral) {
        var refusals: Set<Int> = []
        while true {
            let slot = try devices.acquireSlot(for: address, isRandom: command.isRandom, besides: refusals)
            await slot.predecessor?.value
            let start = ContinuousClock.now
            do throws(BLEError) {
                let peripheral = try await slot.adapter.central.connect(
                    to: slot.device,
                    timeout: Self.connectionTimeout
                )
                devices.connected(slot)
                return (slot, peripheral)
            } catch {
                devices.events.record(.deviceFailed, "\(slot.device)", "\(error)")
                let hasFailed = error.isFailedAttempt(
                    after: ContinuousClock.now - start,
                    failedAttemptTime: devices.failedAttemptTime
                )
                devices.release(slot, isRefused: error.meansNoFurtherLink, hasFailed: hasFailed)
                guard error.meansNoFurtherLink else { throw DeviceCommandError(connection: error) }
                refusals.insert(slot.adapterIndex)
            }
        }
    }

    /// Ends the connection and its subscriptions, and frees the slot. Cancellation does not shorten it.
    private func endLink() async {
        guard let link else { return }
        self.link = nil
        link.observer.cancel()
        await Task { await link.peripheral.disconnect() }.value
        let reason = await Task { try? await link.peripheral.disconnection() }.value
        devices.events.record(.deviceDisconnected, "\(link.slot.device)", reason.map { "\($0)" })
        await devices.readBonds(of: link.slot.adapterIndex)
        devices.release(link.slot)
    }
}
