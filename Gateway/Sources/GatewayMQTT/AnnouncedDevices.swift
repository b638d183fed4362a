import BLE

/// The devices whose readings this run has announced to Home Assistant, and when they were heard.
///
/// Other gateways announce the same devices under the same topics. So a device that is silent for a day is not
/// forgotten at once: the gateway listens for an hour to what others publish about it. Then it removes the
/// announcements. Each is forgotten when the broker has confirmed its removal. If the connection ends before that,
/// another gateway may announce the device, so the gateway listens again first. After ``lostRemovalLimit`` such
/// connections, it forgets the device.
struct AnnouncedDevices {
    /// An announcement that is to be removed.
    struct Removal: Hashable {
        let address: DeviceAddress
        let topic: String

        /// An empty message removes the retained one.
        var message: MQTTMessage { MQTTMessage(topic: topic, payload: "", isRetained: true) }
    }

    /// The actions for silent devices.
    struct Actions: Equatable {
        /// The devices whose readings by other gateways are to be received.
        var begun: [DeviceAddress] = []
        /// The devices whose readings by other gateways are not needed any more.
        var ended: [DeviceAddress] = []
        /// The announcements that are to be removed.
        var removals: [Removal] = []
    }

    /// After this time without a reading, the gateway listens to others.
    static let silence = Duration.seconds(86_400)
    /// How long the gateway listens to others before it forgets a device.
    static let listeningTime = Duration.seconds(3600)
    /// The greatest number of devices for which the gateway listens to others at a time.
    static let listeningLimit = 512
    /// The number of connections that end before the broker has confirmed the removals of a device, until the gateway
    /// forgets it. The broker may refuse them.
    static let lostRemovalLimit = 3
    /// The greatest number of announcements of a device. Any device in range can have readings without end.
    static let topicLimit = 32
    /// When half of the announcements are used, a new device is announced only if it is heard again after this time. So
    /// addresses that somebody invents, each for a moment, do not use up the others.
    static let candidateTime = Duration.seconds(30)
    /// The greatest number of devices that wait for ``candidateTime``.
    static let candidateLimit = 4096
    /// The shortest time between two changes of an announced unit. The first change has effect at once.
    static let unitInterval = Duration.seconds(3600)
    private static let sweepInterval = Duration.seconds(60)

    private struct Announcement {
        /// Whether Home Assistant may not know it.
        var isDue = false
        /// The unit that was announced last.
        var unit: String?
        /// When another unit than before was announced last.
        var unitChange: Duration?
    }

    private struct Device {
        var lastReading: Duration
        var listeningEnd: Duration?
        /// The announcements by their topics.
        var topics: [String: Announcement] = [:]

        /// Makes all announcements due again.
        mutating func restart() {
            for topic in topics.keys { topics[topic]?.isDue = true }
        }
        /// The number of connections that have ended before the removals were confirmed, since the last reading.
        var lostRemovalCount = 0
    }

    private let limit: Int
    private var devices: [DeviceAddress: Device] = [:]
    private var topicCount = 0
    /// The removals that the broker has not confirmed, by the numbers of their messages.
    private var removals: [Int32: Removal] = [:]
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
        for address in devices.keys { devices[address]?.restart() }
    }

    /// Ends listening, because a new connection has no subscriptions. Removals that were not confirmed are due again
    /// after the gateway has listened.
    mutating func connectionMade() {
        let lost = Set(removals.values.map(\.address))
        removals = [:]
        listeningCount = 0
        for address in devices.keys { devices[address]?.listeningEnd = nil }
        for address in lost { removalWasLost(of: address) }
    }

    private mutating func removalWasLost(of address: DeviceAddress) {
        guard var device = devices[address] else { return }
        device.lostRemovalCount += 1
        guard device.lostRemovalCount < Self.lostRemovalLimit else {
            topicCount -= device.topics.count
            devices[address] = nil
            return
        }
        devices[address] = device
    }

    /// Takes the time of a reading by this gateway.
    ///
    /// If nobody has published a reading for ``listeningTime``, another gateway may have removed the announcements, so
    /// they are due again.
    mutating func hear(_ address: DeviceAddress, at now: Duration) {
        guard let device = devices[address] else { return }
        devices[address]?.lastReading = now
        devices[address]?.lostRemovalCount = 0
        guard now - device.lastReading >= Self.listeningTime else { return }
        devices[address]?.restart()
    }

    /// Takes the time of a reading by another gateway, which announces the device by itself.
    mutating func hearOther(_ address: DeviceAddress, at now: Duration) {
        devices[address]?.lastReading = now
        devices[address]?.lostRemovalCount = 0
    }

    /// Whether an announcement is due. It is not due any more then.
    ///
    /// An announcement with another unit than before is due at once, and later ones once per ``unitInterval``.
    ///
    /// - Parameter unit: the unit of the reading that is announced.
    mutating func announce(_ topic: String, of address: DeviceAddress, unit: String?, at now: Duration) -> Bool {
        guard var announcement = devices[address]?.topics[topic] else {
            guard topicCount < limit else {
                wasFull = true
                return false
            }
            guard devices[address]?.topics.count ?? 0 < Self.topicLimit, isSettled(address, at: now) else {
                return false
            }
            topicCount += 1
            devices[address, default: Device(lastReading: now)].topics[topic] = Announcement(unit: unit)
            return true
        }
        let hasOtherUnit = announcement.unit != unit
        let mayChangeUnit = announcement.unitChange.map { now - $0 >= Self.unitInterval } ?? true
        guard announcement.isDue || hasOtherUnit && mayChangeUnit else { return false }
        announcement.isDue = false
        announcement.unit = unit
        if hasOtherUnit { announcement.unitChange = now }
        devices[address]?.topics[topic] = announcement
        if !removals.isEmpty {
            // The announcement follows the removal, so it is not forgotten when the broker confirms the removal.
            let removal = Removal(address: address, topic: topic)
            removals = removals.filter { $0.value != removal }
        }
        return true
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
    ///
    /// - Parameter room: the greatest number of announcements that can be removed now. For the other devices, the
    ///   gateway listens for longer.
    mutating func sweep(at now: Duration, room: Int) -> Actions {
        var actions = Actions()
        guard now - lastSweep >= Self.sweepInterval else { return actions }
        lastSweep = now
        let removed = Set(removals.values.map(\.address))
        for (address, device) in devices where !removed.contains(address) {
            let isSilent = now - device.lastReading >= Self.silence
            if let end = device.listeningEnd {
                guard !isSilent || now >= end && actions.removals.count + device.topics.count <= room else { continue }
                listeningCount -= 1
                actions.ended.append(address)
                devices[address]?.listeningEnd = nil
                if isSilent {
                    actions.removals += device.topics.keys.map { Removal(address: address, topic: $0) }
                }
            } else if isSilent, listeningCount < Self.listeningLimit {
                listeningCount += 1
                actions.begun.append(address)
                devices[address]?.listeningEnd = now + Self.listeningTime
            }
        }
        return actions
    }

    /// Records that the message of a removal was sent.
    ///
    /// - Parameter number: the number with which the delivery is reported.
    mutating func send(_ removal: Removal, as number: Int32) {
        guard devices[removal.address]?.topics[removal.topic] != nil else { return }
        // A reading that comes now is announced again.
        devices[removal.address]?.topics[removal.topic]?.isDue = true
        removals[number] = removal
    }

    /// Records the confirmation of a message. Forgets the announcement if the message has removed it.
    mutating func confirm(_ number: Int32) {
        guard let removal = removals.removeValue(forKey: number),
            devices[removal.address]?.topics.removeValue(forKey: removal.topic) != nil
        else { return }
        topicCount -= 1
        if devices[removal.address]?.topics.isEmpty == true { devices[removal.address] = nil }
    }
}
