import BLE
import ESPHomeMessages
import ESPHomeProtocol
import Logging
import NIOCore
import Synchronization

/// Passes the advertisements of all adapters to the clients that subscribe to them. Adapters scan while there is one.
final class Scanner: Sendable {
    /// The state of an adapter's scan.
    typealias AdapterState = ESPHomeBluetoothScannerState

    private struct State {
        var subscribers: [Client] = []
        var batches: BatchQueue
        /// Whether the timer of batches runs. It outlives full batches, because setting it wakes the event loop.
        var isTimerSet = false
        /// The mode of the last request; the configured one if there is none.
        var mode: ScanMode
        /// The last request for a mode of each client, in the order of the requests.
        var requests: [(client: Client, mode: ScanMode)] = []
        var adapterStates: [AdapterState]
        var demands: [AsyncStream<ScanMode?>.Continuation?]
        var reported: AdapterState = .idle
        var reception = ReceptionTable()
        var advertisementCount: UInt64 = 0

        /// Whether adapters scan even without subscribers.
        let scansAlways: Bool

        /// How adapters have to scan; nil if nobody needs advertisements.
        var demand: ScanMode? { subscribers.isEmpty && !scansAlways ? nil : mode }
    }

    private let configuredMode: ScanMode
    private let eventLoop: any EventLoop
    private let logger: Logger
    private let usesSeveralAdapters: Bool
    private let sensors: SensorReader?
    private let devices: ReceivedDevices?
    private let state: Mutex<State>

    /// - Parameters:
    ///   - sensors: receives all advertisements; nil if only clients need them.
    ///   - devices: receives all advertisements; nil if nothing needs them.
    ///   - eventLoop: runs the timer of batches.
    init(
        adapterCount: Int,
        mode: ScanMode,
        sensors: SensorReader? = nil,
        devices: ReceivedDevices? = nil,
        eventLoop: any EventLoop,
        logger: Logger
    ) {
        self.sensors = sensors
        self.devices = devices
        configuredMode = mode
        self.eventLoop = eventLoop
        self.logger = logger
        usesSeveralAdapters = adapterCount > 1
        let states = [AdapterState](repeating: .idle, count: adapterCount)
        let demands = [AsyncStream<ScanMode?>.Continuation?](repeating: nil, count: adapterCount)
        let batches = BatchQueue(adapterCount: adapterCount)
        state = Mutex(
            State(batches: batches, mode: mode, adapterStates: states, demands: demands, scansAlways: sensors != nil)
        )
    }

    // MARK: Clients

    /// Sends a client all advertisements from now on, and the state of the scans.
    func subscribe(_ client: Client) {
        state.withLock { state in
            if !state.subscribers.contains(client) { state.subscribers.append(client) }
            client.receivesAdvertisements.store(true, ordering: .relaxed)
            client.send(message(state))
            updateDemand(state)
        }
    }

    /// Sends a client no more advertisements. After the last one, adapters scan as configured.
    func unsubscribe(_ client: Client) {
        state.withLock { unsubscribe(client, &$0) }
    }

    /// Forgets a client that has gone, with its request for a mode.
    func remove(_ client: Client) {
        state.withLock { state in
            state.requests.removeAll { $0.client === client }
            unsubscribe(client, &state)
        }
    }

    private func unsubscribe(_ client: Client, _ state: inout State) {
        client.receivesAdvertisements.store(false, ordering: .relaxed)
        let demand = state.demand
        let hadSubscribers = !state.subscribers.isEmpty
        state.subscribers.removeAll { $0 === client }
        if state.subscribers.isEmpty {
            // With the last subscriber, the requests of clients that receive no advertisements end too.
            state.requests.removeAll { hadSubscribers || $0.client === client }
        }
        let mode = state.requests.last?.mode ?? configuredMode
        let isChanged = state.mode != mode
        state.mode = mode
        if state.demand != demand { updateDemand(state) }
        if isChanged { informSubscribers(&state) }
    }

    /// Changes how all adapters scan, while a client receives advertisements. The last request of any client counts,
    /// until its client has gone.
    func setMode(_ mode: ScanMode, for client: Client) {
        state.withLock { state in
            state.requests.removeAll { $0.client === client }
            state.requests.append((client, mode))
            let isChanged = state.mode != mode
            state.mode = mode
            if isChanged { updateDemand(state) }
            informSubscribers(&state)
        }
    }

    /// Sends the state of the scans to the clients.
    private func informSubscribers(_ state: inout State) {
        // Advertisements that were received before the change are sent before it.
        send(state.batches.takeAll(), state)
        for client in state.subscribers { client.send(message(state)) }
    }

    private func updateDemand(_ state: borrowing State) {
        for continuation in state.demands { continuation?.yield(state.demand) }
    }

    private func message(_ state: borrowing State) -> Message {
        var response = ESPHomeBluetoothScannerStateResponse()
        response.state = Self.summary(of: state.adapterStates)
        response.mode = state.mode == .active ? .active : .passive
        response.configuredMode = configuredMode == .active ? .active : .passive
        return Message(.scannerStateResponse, response)
    }

    /// The state that clients see: the best of all adapters.
    private static func summary(of states: [AdapterState]) -> AdapterState {
        let order: [AdapterState] = [.running, .starting, .stopping, .failed, .stopped]
        return order.first { states.contains($0) } ?? .idle
    }

    // MARK: Adapters

    /// Returns how an adapter has to scan, now and after each change; nil for not at all.
    func demands(for adapter: Int) -> AsyncStream<ScanMode?> {
        let (stream, continuation) = AsyncStream.makeStream(of: ScanMode?.self, bufferingPolicy: .bufferingNewest(1))
        state.withLock { state in
            state.demands[adapter]?.finish()
            state.demands[adapter] = continuation
            continuation.yield(state.demand)
        }
        return stream
    }

    /// Reports the state of an adapter's scan.
    func report(_ adapterState: AdapterState, of adapter: Int) {
        state.withLock { state in
            state.adapterStates[adapter] = adapterState
            let summary = Self.summary(of: state.adapterStates)
            guard summary != state.reported else { return }
            state.reported = summary
            informSubscribers(&state)
        }
    }

    /// Reports that an adapter's controller has been brought up again, so it scans if that is wanted.
    func reportReady(_ adapter: Int) {
        let isWanted = state.withLock { $0.demand != nil }
        report(isWanted ? .running : .idle, of: adapter)
    }

    /// Passes on an advertisement that was received in a scan of a mode.
    ///
    /// A passive scan requests no scan responses, so the response that an earlier active scan received is left out.
    ///
    /// - Returns: whether it is the first one of a turn of the adapter's loop. Then ``endTurn(of:)`` is needed at its
    ///   end.
    func receive(_ advertisement: Advertisement, in mode: ScanMode, from adapter: Int) -> Bool {
        let raw = RawAdvertisement(
            address: advertisement.address.value,
            rssi: advertisement.rssi ?? -127,
            isRandom: advertisement.address.isRandom,
            data: mode == .active ? Self.mergedData(of: advertisement) : advertisement.advertisingData
        )
        devices?.receive(advertisement, by: adapter)
        sensors?.receive(raw.data, of: advertisement)
        return state.withLock { state in
            state.advertisementCount += 1
            if usesSeveralAdapters {
                state.reception.record(raw.address, rssi: raw.rssi, at: .now(), by: adapter)
            }
            guard !state.subscribers.isEmpty else { return false }
            let (isFirst, full) = state.batches.append(raw, from: adapter)
            send(full, state)
            return isFirst
        }
    }

    /// Ends a turn of an adapter's loop. Call it when all advertisements that were read together have been received.
    func endTurn(of adapter: Int) {
        state.withLock { state in
            send(state.batches.endTurn(of: adapter, at: eventLoop.now), state)
            setTimer(&state)
        }
    }

    /// The advertising data followed by the scan response. Padding between them would hide the scan response.
    private static func mergedData(of advertisement: Advertisement) -> [UInt8] {
        let data = advertisement.advertisingData
        let response = advertisement.scanResponseData
        guard !response.isEmpty else { return data }
        var end = 0
        while end < data.count, data[end] != 0, end + Int(data[end]) < data.count { end += Int(data[end]) + 1 }
        return data[..<end] + response
    }

    private func setTimer(_ state: inout State) {
        guard !state.isTimerSet, let deadline = state.batches.deadline else { return }
        state.isTimerSet = true
        eventLoop.scheduleTask(deadline: deadline) { [self] in sendWaitingBatch() }
    }

    /// Sends the batch if it has waited long enough. Otherwise it is a newer one, for which the timer runs again.
    private func sendWaitingBatch() {
        state.withLock { state in
            state.isTimerSet = false
            send(state.batches.advance(to: eventLoop.now), state)
            setTimer(&state)
        }
    }

    private func send(_ batches: [AdvertisementBatch], _ state: borrowing State) {
        guard !batches.isEmpty else { return }
        for client in state.subscribers { client.send(batches) }
    }

    // MARK: Information

    /// The signal of a device at an adapter, in dBm; nil if the adapter has not received the device lately.
    func rssi(of address: UInt64, by adapter: Int) -> Int? {
        state.withLock { $0.reception.rssi(of: address, by: adapter, at: .now()) }
    }

    var advertisementCount: UInt64 { state.withLock { $0.advertisementCount } }

    /// How adapters scan if they do.
    var mode: ScanMode { state.withLock { $0.mode } }

    func isScanning(_ adapter: Int) -> Bool { state.withLock { $0.adapterStates[adapter] == .running } }
}
