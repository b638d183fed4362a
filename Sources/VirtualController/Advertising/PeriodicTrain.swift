import BluetoothTypes
import HCI

/// The periodic advertising of a set: at exact intervals, to those who have synchronized (Vol 6, Part B, 4.4.2.12).
final class PeriodicTrain {
    let handle: UInt8
    /// In units of 1.25 ms.
    var interval: UInt16
    var properties: PeriodicAdvertisingProperties
    var payload = AdvertisingPayload()
    /// Whether the host wants it. It begins when the set is first advertised, and goes on when that ends.
    var isEnabled = false
    /// Tells a run of it from earlier ones; nil while it does not run.
    private(set) var run: UInt64?
    private var runs: UInt64 = 0
    private(set) var receivers: [PeriodicSync] = []

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

    /// Nothing is heard of it any more; whoever has synchronized finds out when it has waited long enough.
    func stop() {
        isEnabled = false
        run = nil
        receivers = []
    }

    func add(_ receiver: PeriodicSync) { receivers.append(receiver) }

    func remove(_ receiver: PeriodicSync) { receivers.removeAll { $0 === receiver } }
}

extension VirtualController {
    /// Begins a train that its host wants, once its set is advertised.
    func startIfReady(_ train: PeriodicTrain) {
        guard train.isEnabled, !train.isRunning, let index = advertiser.index(of: train.handle),
            advertiser.sets[index].isEnabled
        else { return }
        let run = train.begin()
        schedule(after: train.intervalDuration) { $0.transmit(train, run) }
    }

    private func transmit(_ train: PeriodicTrain, _ run: UInt64) {
        guard train.run == run, let index = advertiser.index(of: train.handle) else { return }
        let parameters = advertiser.sets[index].parameters
        for receiver in train.receivers { receiver.hear(train, from: self, parameters) }
        schedule(after: train.intervalDuration) { $0.transmit(train, run) }
    }
}
