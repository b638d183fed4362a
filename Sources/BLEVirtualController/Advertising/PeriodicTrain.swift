import BLEHCI
import BluetoothTypes

/// The periodic advertising of a set: events at exact intervals, for synchronized receivers (Vol 6, Part B, 4.4.2.12).
final class PeriodicTrain {
    let handle: UInt8
    /// In units of 1.25 ms.
    var interval: UInt16
    var properties: PeriodicAdvertisingProperties
    var payload = AdvertisingPayload()
    /// The subevents and their response slots; nil for a train without subevents.
    var subevents: SubeventTiming?
    /// The data that the host has set, by subevent. Each is sent once.
    var subeventData: [UInt8: LESetPeriodicAdvertisingSubeventData.Subevent] = [:]
    /// The responses that are on the way, by subevent.
    var responses: [UInt8: [SubeventResponse]] = [:]
    /// The number of the last event.
    private(set) var eventCounter: UInt16 = 0xFFFF
    /// When the last event began.
    private(set) var eventStart = Instant(nanoseconds: 0)
    /// The broadcast group that the train announces; nil for none.
    weak var broadcast: BroadcastGroup?
    /// Whether the host has enabled it. It starts when the set is first advertised, and continues when that ends.
    var isEnabled = false
    /// Distinguishes a run of the train from earlier runs; nil while it does not run.
    private(set) var run: UInt64?
    private var runs: UInt64 = 0
    /// Fires when the next event is due.
    let timer = Air.Timer()
    private(set) var receivers: [PeriodicSync] = []
    /// The receivers by the subevents that they listen to.
    private var listeners: [UInt8: [PeriodicSync]] = [:]

    init(handle: UInt8, interval: UInt16, properties: PeriodicAdvertisingProperties) {
        self.handle = handle
        self.interval = interval
        self.properties = properties
    }

    var isRunning: Bool { run != nil }
    var intervalDuration: Duration { .microseconds(1250 * Int(interval)) }

    func begin() -> UInt64 {
        runs += 1
        run = runs
        return runs
    }

    /// Stops the train. Synchronized receivers notice it when their timeout expires.
    func stop() {
        isEnabled = false
        run = nil
        receivers = []
        listeners = [:]
        subeventData = [:]
        responses = [:]
    }

    func beginEvent(at now: Instant) {
        eventCounter &+= 1
        eventStart = now
    }

    func add(_ receiver: PeriodicSync) {
        receivers.append(receiver)
        listen(receiver)
    }

    func remove(_ receiver: PeriodicSync) {
        receivers.removeAll { $0 === receiver }
        for subevent in receiver.heardSubevents { listeners[subevent]?.removeAll { $0 === receiver } }
    }

    // MARK: Subevents

    /// The receivers that listen to a subevent.
    func receivers(of subevent: UInt8) -> [PeriodicSync] { listeners[subevent] ?? [] }

    /// Removes the responses of earlier events. If a subevent has no response slots, its responses are never received.
    func removeStaleResponses(to subevent: UInt8) {
        responses[subevent]?.removeAll { Int16(bitPattern: $0.event &- eventCounter) < 0 }
    }

    /// Has a receiver listen to other subevents.
    func choose(_ subevents: [UInt8], for receiver: PeriodicSync) {
        for subevent in receiver.heardSubevents { listeners[subevent]?.removeAll { $0 === receiver } }
        receiver.subevents = subevents
        listen(receiver)
    }

    private func listen(_ receiver: PeriodicSync) {
        guard subevents != nil else { return }
        for subevent in receiver.heardSubevents { listeners[subevent, default: []].append(receiver) }
    }
}

/// A train is equal only to itself.
extension PeriodicTrain: Hashable {
    static func == (left: PeriodicTrain, right: PeriodicTrain) -> Bool { left === right }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension VirtualController {
    /// Starts a train that its host has enabled, once its set is advertised.
    func startIfReady(_ train: PeriodicTrain) {
        guard train.isEnabled, !train.isRunning, let index = advertiser.index(of: train.handle),
            advertiser.sets[index].isEnabled
        else { return }
        let run = train.begin()
        // The answer to the command is sent first.
        schedule { $0.requestFirstData(of: train) }
        schedule(after: train.intervalDuration, on: train.timer) { $0.transmit(train, run) }
    }

    /// Stops a train at the request of its host.
    func stop(_ train: PeriodicTrain) {
        train.stop()
        air.cancel(train.timer)
    }

    private func transmit(_ train: PeriodicTrain, _ run: UInt64) {
        guard train.run == run, let index = advertiser.index(of: train.handle) else { return }
        train.beginEvent(at: air.now)
        if train.subevents != nil {
            transmit(0, of: train, run)
        } else {
            let parameters = advertiser.sets[index].parameters
            for receiver in train.receivers { receiver.hear(train, from: self, parameters) }
        }
        schedule(after: train.intervalDuration, on: train.timer) { $0.transmit(train, run) }
    }
}
