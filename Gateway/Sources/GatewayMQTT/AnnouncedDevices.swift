import BLE

/// The devices whose readings this run has announced to Home Assistant, and when they were heard.
///
/// Other gateways announce the same devices under the same topics. So a device that is silent for a day is not forgotten at
/// once: the gateway listens for an hour to what others publish about it.
struct AnnouncedDevices {
    /// What is to be done for devices that are silent.
    struct Actions: Equatable {
        /// The devices whose readings by other gateways are to be received.
        var begun: [DeviceAddress] = []
        /// The devices whose readings by other gateways are not needed any more.
        var ended: [DeviceAddress] = []
        /// The topics of announcements that are to be removed.
        var topics: [String] = []
    }

    /// After this time without a reading, the gateway listens to others.
    static let silence = Duration.seconds(86_400)
    /// How long the gateway listens to others before it forgets a device.
    static let listeningTime = Duration.seconds(3600)
    /// The greatest number of devices for which the gateway listens to others at a time.
    static let listeningLimit = 512
    /// The greatest number of announcements of a device. Any device in range can have readings without end.
    static let topicLimit = 32
    /// When half of the announcements are used, a new device is announced only if it is heard again after this time. So
    /// addresses that somebody invents, each for a moment, do not use up the others.
    static let candidateTime = Duration.seconds(30)
    /// The greatest number of devices that wait for ``candidateTime``.
    static let candidateLimit = 4096
    private static let sweepInterval = Duration.seconds(60)

    private struct Device {
        var lastReading: Duration
        var listeningEnd: Duration?
        /// The topics of announcements, and whether Home Assistant knows them.
        var topics: [String: Bool] = [:]
    }

    private let limit: Int
    private var devices: [DeviceAddress: Device] = [:]
    private var topicCount = 0
    /// When the devices were heard first that are not announced yet, because many are.
    private var candidates: [DeviceAddress: Duration] = [:]
    private var listeningCount = 0
    private var lastSweep = Duration.zero
    /// Whether an announcement was left out because there are too many.
    private(set) var wasFull = false

    /// - Parameter limit: the greatest number of announcements.
    init(limit: Int) {
        self.limit = limit
    }

    /// Makes all announcements due again.
    mutating func restart() {
        for (address, device) in devices { devices[address]?.topics = device.topics.mapValues { _ in false } }
    }

    /// Ends listening, because a new connection has no subscriptions.
    mutating func endListening() {
        listeningCount = 0
        for address in devices.keys { devices[address]?.listeningEnd = nil }
    }

    /// Takes the time of a reading by this gateway.
    ///
    /// If nobody has published a reading for ``listeningTime``, another gateway may have removed the announcements, so they
    /// are due again.
    mutating func hear(_ address: DeviceAddress, at now: Duration) {
        guard let device = devices[address] else { return }
        devices[address]?.lastReading = now
        guard now - device.lastReading >= Self.listeningTime else { return }
        devices[address]?.topics = device.topics.mapValues { _ in false }
    }

    /// Takes the time of a reading by another gateway, which announces the device by itself.
    mutating func hearOther(_ address: DeviceAddress, at now: Duration) { devices[address]?.lastReading = now }

    /// Whether an announcement is due. It is not due any more then.
    mutating func announce(_ topic: String, of address: DeviceAddress, at now: Duration) -> Bool {
        guard let isKnown = devices[address]?.topics[topic] else {
            guard topicCount < limit else {
                wasFull = true
                return false
            }
            guard devices[address]?.topics.count ?? 0 < Self.topicLimit, isSettled(address, at: now) else {
                return false
            }
            topicCount += 1
            devices[address, default: Device(lastReading: now)].topics[topic] = true
            return true
        }
        devices[address]?.topics[topic] = true
        return !isKnown
    }

    /// Whether a device is there for long enough to be announced.
    private mutating func isSettled(_ address: DeviceAddress, at now: Duration) -> Bool {
        guard devices[address] == nil, topicCount >= limit / 2 else { return true }
        if let start = candidates[address] {
            guard now - start >= Self.candidateTime else { return false }
            candidates[address] = nil
            return true
        }
        if candidates.count >= Self.candidateLimit {
            candidates = candidates.filter { now - $0.value < Self.candidateTime * 2 }
            if candidates.count >= Self.candidateLimit { candidates = [:] }
        }
        candidates[address] = now
        return false
    }

    /// Looks at the devices that are silent, once a minute.
    mutating func sweep(at now: Duration) -> Actions {
        var actions = Actions()
        guard now - lastSweep >= Self.sweepInterval else { return actions }
        lastSweep = now
        for (address, device) in devices {
            let isSilent = now - device.lastReading >= Self.silence
            if let end = device.listeningEnd {
                guard !isSilent || now >= end else { continue }
                listeningCount -= 1
                actions.ended.append(address)
                devices[address]?.listeningEnd = nil
                if isSilent {
                    actions.topics += device.topics.keys
                    topicCount -= device.topics.count
                    devices[address] = nil
                }
            } else if isSilent, listeningCount < Self.listeningLimit {
                listeningCount += 1
                actions.begun.append(address)
                devices[address]?.listeningEnd = now + Self.listeningTime
            }
        }
        return actions
    }
}
