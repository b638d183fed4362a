import BLE
import BLEGATT
import BLEProfiles
import BluetoothTypes

/// A profile on the air. It prints what clients do, and carries out commands.
///
/// # Commands
/// Commands are carried out in order, and none waits for a client: notifications and indications are submitted, and
/// links begin to end. So answers to questions and `quit` are read at any time. The exception is a characteristic with
/// ``PendingValues/limit`` pending values: the next value waits until a client has taken one.
actor ProfileServer {
    private let adapter: Adapter
    private let peripheral: Peripheral
    private let address: DeviceAddress
    private let served: ServedProfile
    private let advertising: AdvertisingSet
    private let train: AdvertisingSet?
    private let events: Events<PeripheralEvent>
    private let console: PairingConsole
    private let output: @Sendable (String) throws -> Void
    /// The events that say when the pairing window has expired; nil if clients need no window for a pairing.
    private let securityEvents: Events<SecurityEvent>?
    private let unsent = PendingValues()
    private let unconfirmed = PendingValues()
    private var clients: [ClientID: DeviceAddress] = [:]

    /// Publishes the services and begins to advertise.
    ///
    /// - Parameters:
    ///   - pairingWindow: how long clients may begin pairings from now on; nil if the adapter's policy has no window.
    ///   - output: prints a line.
    init(
        _ profile: Profile,
        on adapter: Adapter,
        console: PairingConsole,
        pairingWindow: Duration? = nil,
        output: @escaping @Sendable (String) throws -> Void = { try Output.standard.line($0) }
    ) async throws {
        self.console = console
        self.output = output
        self.adapter = adapter
        securityEvents = pairingWindow == nil ? nil : await adapter.securityEvents()
        peripheral = adapter.peripheral
        events = await adapter.peripheral.events()
        let identity = try await adapter.information.identityAddress
        address = profile.address ?? identity
        served = ServedProfile(try await peripheral.publish(profile.definitions))
        let payload = profile.payload
        if let pairingWindow { await adapter.openPairingWindow(for: pairingWindow) }
        advertising = try await peripheral.startAdvertising(
            AdvertisementConfiguration(
                isConnectable: profile.advertise.isConnectable,
                isScannable: profile.advertise.isConnectable || payload.scanResponseData.length > 0,
                interval: profile.advertise.interval,
                advertisingData: payload.advertisingData,
                scanResponseData: payload.scanResponseData,
                address: profile.address,
                phys: AdvertisingPHYs(profile.advertise)
            )
        )
        train = try await Self.startTrain(of: profile, on: peripheral)
    }

    /// Starts the periodic advertising train in an advertising set of its own, because a set that announces a train
    /// accepts no connections.
    private static func startTrain(of profile: Profile, on peripheral: Peripheral) async throws -> AdvertisingSet? {
        guard let periodic = profile.advertise.periodic else { return nil }
        return try await peripheral.startAdvertising(
            AdvertisementConfiguration(
                isConnectable: false,
                isScannable: false,
                interval: profile.advertise.interval,
                advertisingData: AdvertisingData(profile.name.map { [.completeLocalName($0)] } ?? []),
                address: profile.address,
                periodic: PeriodicAdvertisingConfiguration(
                    interval: periodic.interval,
                    data: AdvertisingData(decoding: periodic.data)
                )
            )
        )
    }

    /// Runs until a command ends it or the task is cancelled.
    ///
    /// - Parameter commands: the lines of commands, whose end does not stop the server; nil for none.
    func run<Lines>(adapter: String, commands: Lines?) async throws
    where Lines: AsyncSequence & Sendable, Lines.Element == String {
        try tell(.ready(adapter: adapter, address: address))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await event in self.events { try await self.tell(event) }
                try Task.checkCancellation()
                throw BLEError.closed
            }
            if let securityEvents {
                group.addTask {
                    for await event in securityEvents where event == .pairingWindowExpired {
                        try await self.tell(.window(nil))
                    }
                    try await ProfileServer.serveFurther()
                }
            }
            group.addTask {
                if let commands {
                    do {
                        for try await line in commands where try await !self.obey(line) { return }
                    } catch let error as FileError {
                        Output.complain("\(error): no more commands are read")
                    }
                }
                self.console.end()
                try await ProfileServer.serveFurther()
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// Waits until the task is cancelled: the end of an input does not stop the server.
    private static func serveFurther() async throws {
        try await Task.sleep(for: .seconds(86_400 * 365 * 100))
    }

    /// Stops advertising and disconnects all clients.
    func stop() async {
        await train?.stop()
        await advertising.stop()
        await withDiscardingTaskGroup { group in
            for client in clients.keys { group.addTask { [peripheral] in await peripheral.disconnect(client) } }
        }
    }

    // MARK: Events

    private func tell(_ event: PeripheralEvent) throws {
        if let told = translate(event) { try tell(told) }
    }

    private func tell(_ event: ServeEvent) throws {
        try output(event.json.description)
    }

    private func translate(_ event: PeripheralEvent) -> ServeEvent? {
        switch event {
        case .connected(let client, let address):
            clients[client] = address
            return .connected(address)
        case .disconnected(let client, let reason):
            return clients.removeValue(forKey: client).map { .disconnected($0, reason: "\(reason)") }
        case .read(let client, let handle, let offset):
            return clients[client].map { .read($0, served.attribute(handle), offset: offset) }
        case .written(let client, let handle, let offset, let value, let isCommand):
            return clients[client].map {
                .write($0, served.attribute(handle), value: value, offset: offset, isCommand ? .command : .request)
            }
        case .subscribed(let client, let handle, let kind):
            return clients[client].map { .subscribed($0, served.attribute(handle), .init(kind)) }
        case .unsubscribed(let client, let handle, let kind):
            return clients[client].map { .unsubscribed($0, served.attribute(handle), .init(kind)) }
        case .mtuChanged(let client, let mtu):
            return clients[client].map { .mtu($0, mtu) }
        case .encryptionChanged(let client, let strength):
            return clients[client].map { .encryption($0, strength) }
        case .pairingStarted(let client):
            return clients[client].map { .pairing($0) }
        case .paired(let client, let result):
            return clients[client].map { .paired($0, result) }
        case .pairingFailed(let client, let error):
            return clients[client].map { .pairingFailed($0, reason: "\(error)") }
        case .eventsDropped(let count):
            Output.complain("\(count) events were dropped: the output is read too slowly")
            return nil
        }
    }

    // MARK: Commands

    /// Carries out a command. Returns whether the server continues.
    private func obey(_ line: String) async throws -> Bool {
        do {
            guard let command = try ServeCommand(parsing: line) else { return true }
            switch command {
            case .set(let selector, let value):
                try await peripheral.setValue(value, of: served.handle(selector))
            case .notify(let selector, let value):
                try await notify(value, of: served.handle(selector))
            case .indicate(let selector, let value):
                try await indicate(value, of: served.handle(selector))
            case .train(let data): try await activeTrain().setPeriodicData(AdvertisingData(decoding: data))
            case .transfer(let serviceData): try transferTrain(serviceData)
            case .disconnect:
                for client in clients.keys { await peripheral.beginDisconnecting(client) }
            case .window(let time): try await setWindow(time)
            case .answer(let reply): try console.take(reply)
            case .quit: return false
            }
        } catch  where !Task.isCancelled && !(error is OutputError) {
            try tell(.error("\(error)"))
        }
        return true
    }

    private func activeTrain() throws(ArgumentProblem) -> AdvertisingSet {
        if let train { return train }
        throw ArgumentProblem("there is no train: the profile's \"advertise\" has no key \"periodic\"")
    }

    /// Transfers the train to the clients that are connected now, and does not wait until their features are read.
    private func transferTrain(_ serviceData: UInt16) throws(ArgumentProblem) {
        let train = try activeTrain()
        for (client, address) in clients {
            Task { await transfer(train, serviceData, to: client, address) }
        }
    }

    private func transfer(
        _ train: AdvertisingSet,
        _ serviceData: UInt16,
        to client: ClientID,
        _ address: DeviceAddress
    ) async {
        do throws(BLEError) {
            try await peripheral.transferTrain(of: train, serviceData: serviceData, to: client)
            try? tell(.transferred(address, serviceData: serviceData))
        } catch {
            try? tell(.error("\(error)"))
        }
    }

    /// Opens the pairing window for a time, or closes it.
    private func setWindow(_ time: Seconds?) async throws {
        guard securityEvents != nil else {
            throw ArgumentProblem("window needs --pairing-window, so that clients may pair only while a window is open")
        }
        if let time {
            await adapter.openPairingWindow(for: time.duration)
        } else {
            await adapter.closePairingWindow()
        }
        try tell(.window(time))
    }

    /// Notifies the clients that are subscribed now, and does not wait until the values are sent.
    private func notify(_ value: [UInt8], of handle: AttributeHandle) async throws {
        try await unsent.begin(handle)
        do {
            try await peripheral.submitNotification(value, of: handle) { [unsent] in unsent.end(handle) }
        } catch {
            unsent.end(handle)
            throw error
        }
    }

    /// Indicates to the clients that are subscribed now, and does not wait until they confirm.
    private func indicate(_ value: [UInt8], of handle: AttributeHandle) async throws {
        try await unconfirmed.begin(handle)
        do {
            try await peripheral.submitIndication(value, of: handle) { [unconfirmed] in unconfirmed.end(handle) }
        } catch {
            unconfirmed.end(handle)
            throw error
        }
    }
}

extension ServeEvent.SubscriptionKind {
    init(_ kind: PeripheralEvent.SubscriptionKind) {
        switch kind {
        case .notify: self = .notification
        case .indicate: self = .indication
        }
    }
}

extension AdvertisingPHYs {
    fileprivate init(_ profile: Profile.Advertise) {
        switch profile.phy {
        case .le1M: self.init()
        case .le2M: self.init(secondary: .le2M)
        case .coded:
            let coding: AdvertisingPHYOptions =
                switch profile.coding {
                case .s2?: .preferS2Coding
                case .s8?: .preferS8Coding
                case nil: .noPreference
                }
            self = .coded(coding)
        }
    }
}
