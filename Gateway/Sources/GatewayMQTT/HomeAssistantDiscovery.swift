import BLE
import BluetoothSensors
import GatewayCore

/// The messages by which Home Assistant learns which sensors there are
/// (https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery).
struct HomeAssistantDiscovery {
    /// The greatest number of readings that are announced.
    static let limit = 16_384

    let prefix: String
    let topics: Topics
    private var devices = AnnouncedDevices(limit: limit)

    /// The topic on which Home Assistant reports that it has started or stops.
    var statusTopic: String { "\(prefix)/status" }

    /// Whether a reading was not announced because there are too many.
    var wasFull: Bool { devices.wasFull }

    init(prefix: String, topics: Topics) {
        self.prefix = prefix
        self.topics = topics
    }

    /// Forgets what was announced, so that it is announced again.
    mutating func restart() {
        devices.restart()
    }

    /// Forgets the subscriptions of the last connection, and the removals that were sent on it.
    mutating func connectionMade() {
        devices.connectionMade()
        restart()
    }

    /// Takes the time of an observation, also if nothing can be announced now.
    mutating func hear(_ observation: SensorObservation, at now: Duration) {
        devices.hear(observation.address, at: now)
    }

    /// Takes the topic of a message from the broker: other gateways may hear a device that is silent here.
    mutating func hear(_ topic: String, at now: Duration) {
        if let address = topics.sensor(of: topic) {
            for isRandom in [false, true] { devices.hearOther(DeviceAddress(address, isRandom: isRandom), at: now) }
        }
    }

    /// The actions for silent devices.
    struct Actions: Equatable {
        /// The topics to subscribe to.
        var subscribe: [String] = []
        /// The topics whose subscriptions end.
        var unsubscribe: [String] = []
        /// The announcements that are to be removed.
        var removals: [AnnouncedDevices.Removal] = []
    }

    /// Looks at the devices that are silent, once a minute.
    ///
    /// - Parameter room: the greatest number of announcements that can be removed now.
    mutating func sweep(at now: Duration, room: Int = .max) -> Actions {
        let actions = devices.sweep(at: now, room: room)
        return Actions(
            subscribe: actions.begun.map { topics.readings(of: $0, by: "+") },
            unsubscribe: actions.ended.map { topics.readings(of: $0, by: "+") },
            removals: actions.removals
        )
    }

    /// Records that the message of a removal was sent.
    ///
    /// - Parameter number: the number with which the delivery is reported.
    mutating func send(_ removal: AnnouncedDevices.Removal, as number: Int32) { devices.send(removal, as: number) }

    /// Records that the broker has confirmed an announcement or a removal.
    mutating func confirm(_ number: Int32) { devices.confirm(number) }

    /// The messages for the readings of an observation that were not announced yet, or with another unit.
    ///
    /// Devices with changing addresses, and beacons, are not announced.
    ///
    /// - Parameter isSent: whether an announcement for a topic can be sent. Otherwise it stays due.
    mutating func announcements(
        for observation: SensorObservation,
        at now: Duration,
        isSent: (_ topic: String) -> Bool = { _ in true }
    ) -> [MQTTMessage] {
        guard [.public, .randomStatic].contains(observation.address.kind), !observation.report.isBeacon else {
            return []
        }
        var messages: [MQTTMessage] = []
        for reading in observation.report.readings {
            guard let component = reading.component else { continue }
            let identifier = "ble_\(observation.address.digits)_\(reading.name.identifier)"
            let topic = "\(prefix)/\(component.rawValue)/\(identifier)/config"
            let unit = component == .sensor ? reading.unit : nil
            guard isSent(topic), devices.announce(topic, of: observation.address, unit: unit, at: now) else { continue }
            messages.append(
                MQTTMessage(
                    topic: topic,
                    payload: configuration(of: reading, component, identifier, observation),
                    isRetained: true
                )
            )
        }
        return messages
    }

    private func configuration(
        of reading: SensorReading,
        _ component: SensorReading.Component,
        _ identifier: String,
        _ observation: SensorObservation
    ) -> String {
        let words = reading.name.split(separator: "_").joined(separator: " ")
        var fields = [
            ("name", JSONText.string(words.prefix(1).uppercased() + words.dropFirst())),
            ("unique_id", JSONText.string(identifier)),
            ("state_topic", JSONText.string(topics.readings(of: observation.address, by: "+"))),
            ("value_template", JSONText.string(valueTemplate(of: reading))),
            // Other gateways may publish the readings too, so the status of this one does not say whether they are
            // available.
            ("expire_after", "\(observation.report.expiryInSeconds)"),
        ]
        if let deviceClass = reading.homeAssistantClass {
            fields.append(("device_class", JSONText.string(deviceClass)))
        }
        if component == .sensor {
            if let unit = reading.unit { fields.append(("unit_of_measurement", JSONText.string(unit))) }
            if case .number = reading.value { fields.append(("state_class", JSONText.string(reading.stateClass))) }
        }
        var device = [
            ("identifiers", "[\(JSONText.string("ble_\(observation.address.digits)"))]"),
            ("connections", "[[\"bluetooth\", \(JSONText.string("\(observation.address)"))]]"),
            ("name", JSONText.string(observation.name ?? "\(observation.address)")),
        ]
        device.append(("model", JSONText.string(observation.report.model ?? observation.report.format.rawValue)))
        fields.append(("device", JSONText.object(device)))
        return JSONText.object(fields)
    }

    /// The template by which Home Assistant takes the value of a reading from a message.
    ///
    /// A message may lack the reading, which then keeps its value. Home Assistant ignores an empty result for numbers
    /// and binary sensors. A text would become empty, so its template repeats the state. The template of a number must
    /// not: the state is in the unit that the user has chosen, and Home Assistant would convert it again.
    ///
    /// A device may send a number and a state of the same name, or a number in another unit. Each entity takes only the
    /// values of its kind and unit. If the device changes the unit, the reading is announced again.
    private func valueTemplate(of reading: SensorReading) -> String {
        let key = JSONText.string(reading.name)
        let object = "value_json.readings[\(key)]"
        let path = "\(object).value"
        var condition = "\(key) in value_json.readings"
        var value = "{{ \(path) }}"
        switch reading.value {
        case .boolean:
            condition += " and \(path) is boolean"
            // The class is on if it is unsafe. BTHome sends 1 if it is safe.
            let isSafety = reading.deviceClass == .safety
            value = isSafety ? "{{ 'OFF' if \(path) else 'ON' }}" : "{{ 'ON' if \(path) else 'OFF' }}"
        case .number:
            // In a template, a boolean is a number too.
            condition += " and \(path) is number and \(path) is not boolean"
            if let unit = reading.unit { condition += " and \(object).unit == \(JSONText.string(unit))" }
        case .text: value += "{% else %}{{ this.state }}"
        case .event: break
        }
        return "{% if \(condition) %}\(value){% endif %}"
    }
}

/// The topics of a gateway.
struct Topics: Sendable {
    let prefix: String
    let gateway: String

    /// The topic on which the gateway says whether it is there.
    var status: String { "\(prefix)/gateways/\(gateway)/status" }

    /// The topic of the connections that the gateway can make.
    var connections: String { "\(prefix)/gateways/\(gateway)/connections" }

    /// The topic on which the gateway takes commands.
    var commands: String { "\(prefix)/gateways/\(gateway)/commands" }

    /// The topic of the results of commands.
    var results: String { "\(prefix)/gateways/\(gateway)/results" }

    /// The topic of the values to which commands have subscribed.
    var notifications: String { "\(prefix)/gateways/\(gateway)/notifications" }

    /// The topic of a sensor's readings.
    func readings(of address: DeviceAddress, by gateway: String) -> String {
        "\(prefix)/sensors/\(address.digits)/\(gateway)"
    }

    /// The address of the sensor whose readings a topic has; nil for another topic.
    func sensor(of topic: String) -> UInt64? {
        let start = "\(prefix)/sensors/"
        guard topic.hasPrefix(start) else { return nil }
        let digits = topic.dropFirst(start.count).prefix { $0 != "/" }
        return digits.count == 12 ? UInt64(digits, radix: 16) : nil
    }
}

extension DeviceAddress {
    /// The address as twelve hexadecimal digits.
    fileprivate var digits: String {
        let digits = String(value, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, 12 - digits.count)) + digits
    }
}

extension String {
    /// The text with only those characters that an identifier of Home Assistant can have.
    fileprivate var identifier: String {
        String(map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") ? $0 : "_" })
    }
}

extension SensorReport {
    /// After this time without a message of the device, Home Assistant shows its readings as unavailable.
    ///
    /// A thermometer advertises all the time, and the gateway publishes its readings once a minute at least. A device
    /// that reports states or events, such as a door sensor, may be silent until something happens, as one that says
    /// so. One that sends MiBeacon may send a value only once in several minutes.
    fileprivate var expiryInSeconds: Int {
        let mayBeSilent =
            format == .mibeacon || isIrregular
            || readings.contains { reading in
                switch reading.value {
                case .boolean, .event: true
                case .number, .text: false
                }
            }
        return mayBeSilent ? 3600 : 300
    }

    /// Whether the advertisement identifies its sender, and measures nothing: iBeacon, AltBeacon, and Eddystone without
    /// telemetry.
    fileprivate var isBeacon: Bool {
        switch format {
        case .ibeacon, .altbeacon: true
        case .eddystone: readings.contains { $0.deviceClass == .identifier || $0.deviceClass == .url }
        default: false
        }
    }
}

extension SensorReading {
    /// The kind of an entity in Home Assistant.
    enum Component: String {
        case sensor
        case binarySensor = "binary_sensor"
    }

    /// The kind of the entity; nil for what is no state.
    var component: Component? {
        switch value {
        // The number of a packet says nothing about the sensor's surroundings.
        case _ where deviceClass == .packetID: nil
        case .number, .text: .sensor
        case .boolean: .binarySensor
        case .event: nil
        }
    }

    /// The class by which Home Assistant knows the reading; nil if it has none for it.
    var homeAssistantClass: String? {
        let name =
            switch deviceClass {
            case .mass: "weight"
            case .dewPoint: "temperature"
            default: deviceClass.rawValue
            }
        switch value {
        case .boolean: return Self.binaryClasses.contains(name) ? name : nil
        case .number: return unit != nil && Self.numberClasses.contains(name) ? name : nil
        case .text, .event: return nil
        }
    }

    /// How Home Assistant treats the values over time. It accepts no `measurement` of amounts that add up.
    var stateClass: String {
        switch homeAssistantClass {
        case "energy", "gas", "water": "total_increasing"
        case "volume": "total"
        default: "measurement"
        }
    }

    private static let numberClasses: Set<String> = [
        "battery", "carbon_dioxide", "carbon_monoxide", "conductivity", "current", "distance", "duration", "energy",
        "gas",
        "humidity", "illuminance", "moisture", "pm1", "pm10", "pm25", "power", "precipitation", "pressure",
        "signal_strength", "sound_pressure", "speed", "temperature", "volatile_organic_compounds", "voltage", "volume",
        "volume_flow_rate", "volume_storage", "water", "weight",
    ]

    private static let binaryClasses: Set<String> = [
        "battery", "battery_charging", "carbon_monoxide", "cold", "connectivity", "door", "garage_door", "gas", "heat",
        "light", "lock", "moisture", "motion", "moving", "occupancy", "opening", "plug", "power", "presence", "problem",
        "running", "safety", "smoke", "sound", "tamper", "vibration", "window",
    ]
}
