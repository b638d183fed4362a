import BLE
import BluetoothSensors
import Foundation
import GatewayCore
import Testing

@testable import GatewayMQTT

struct DiscoveryTests {
    private let topics = Topics(prefix: "ble", gateway: "hall")

    private func observation(_ readings: [SensorReading], number: UInt64 = 2) -> SensorObservation {
        SensorObservation(
            time: Date(timeIntervalSince1970: 0),
            gateway: "hall",
            address: DeviceAddress(0xC0DE_0000_0000 + number, isRandom: true),
            report: SensorReport(format: .bthome, readings: readings)
        )
    }

    private func object(_ message: MQTTMessage) throws -> [String: Any] {
        try #require(JSONSerialization.jsonObject(with: Data(message.payload.utf8)) as? [String: Any])
    }

    @Test func binarySensorsHaveStates() throws {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        let messages = discovery.announcements(for: observation([SensorReading(.motion, .boolean(true))]), at: .zero)
        let message = try #require(messages.first)
        #expect(messages.count == 1 && message.isRetained)
        #expect(message.topic == "homeassistant/binary_sensor/ble_C0DE00000002_motion/config")
        let object = try object(message)
        #expect(object["device_class"] as? String == "motion")
        #expect((object["value_template"] as? String)?.contains("'ON'") == true)
        #expect(object["state_class"] == nil)
    }

    /// BTHome: 1 is safe. Home Assistant: the class is on if it is unsafe.
    @Test(
        arguments: [
            (.safety, "{{ 'OFF' if", "else 'ON' }}"), (.problem, "{{ 'ON' if", "else 'OFF' }}"),
        ] as [(SensorDeviceClass, String, String)]
    )
    func safetyIsOnIfItIsUnsafe(deviceClass: SensorDeviceClass, start: String, end: String) throws {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        let reading = SensorReading(deviceClass, .boolean(true))
        let message = try #require(discovery.announcements(for: observation([reading]), at: .zero).first)
        let object = try object(message)
        #expect(object["device_class"] as? String == deviceClass.rawValue)
        let path = "value_json.readings[\"\(deviceClass.rawValue)\"].value"
        #expect((object["value_template"] as? String)?.contains("\(start) \(path) \(end)") == true)
    }

    /// `this.state` of a number is in the unit that the user has chosen, so Home Assistant would convert it again.
    @Test func messageWithoutTheReadingKeepsTheValue() throws {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        let readings = [temperature, SensorReading(.motion, .boolean(true)), SensorReading(.text, .text("a"))]
        let templates = try discovery.announcements(for: observation(readings), at: .zero).map {
            try object($0)["value_template"] as? String
        }
        #expect(templates.map { $0?.contains("this.state") } == [false, false, true])
        let key = "\"temperature\""
        #expect(templates[0]?.hasPrefix("{% if \(key) in value_json.readings and ") == true)
        #expect(templates[0]?.hasSuffix(" %}{{ value_json.readings[\(key)].value }}{% endif %}") == true)
    }

    @Test func classesThatHomeAssistantDoesNotKnowAreLeftOut() throws {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        let readings = [
            SensorReading(.acceleration, .number(1), unit: "m/s²", name: "acceleration_x"),
            SensorReading(.text, .text("a \"b\"")), SensorReading(.packetID, .number(7)),
            SensorReading(.button, .event("press", count: nil)),
        ]
        let messages = discovery.announcements(for: observation(readings), at: .zero)
        #expect(messages.map(\.topic).map { $0.split(separator: "_").last } == ["x/config", "text/config"])
        for message in messages { #expect(try object(message)["device_class"] == nil) }
        #expect(try object(messages[0])["name"] as? String == "Acceleration x")
    }

    @Test func amountsThatAddUpAreNoMeasurements() throws {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        let readings = [
            SensorReading(.energy, .number(1), unit: "kWh"), SensorReading(.gas, .number(1), unit: "m³"),
            SensorReading(.water, .number(1), unit: "L"), SensorReading(.volume, .number(1), unit: "L"),
            SensorReading(.temperature, .number(1), unit: "°C"),
        ]
        let classes = try discovery.announcements(for: observation(readings), at: .zero).map {
            try object($0)["state_class"] as? String
        }
        #expect(classes == ["total_increasing", "total_increasing", "total_increasing", "total", "measurement"])
    }

    @Test func readingsAreAnnouncedOnceAndAgainAfterARestart() {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        let observation = observation([SensorReading(.temperature, .number(1), unit: "°C")])
        let counts = (0..<4).map { round in
            if round == 2 { discovery.restart() }
            return discovery.announcements(for: observation, at: .zero).count
        }
        #expect(counts == [1, 0, 1, 0])
    }

    /// The configuration of a shared sensor is that of the gateway that has announced it last, which may be switched
    /// off.
    @Test func availabilityDoesNotDependOnOneGateway() throws {
        let messages = ["hall", "attic"].flatMap { gateway in
            var discovery = HomeAssistantDiscovery(
                prefix: "homeassistant",
                topics: Topics(prefix: "ble", gateway: gateway)
            )
            return discovery.announcements(for: observation([SensorReading(.motion, .boolean(true))]), at: .zero)
        }
        #expect(messages.count == 2 && messages[0] == messages[1])
        #expect(try object(messages[0])["availability_topic"] == nil)
    }

    @Test func valuesOfADeadThermometerExpireWithinMinutes() throws {
        let thermometer = SensorReport(format: .pvvx, readings: [temperature])
        let door = SensorReport(format: .bthome, readings: [temperature, SensorReading(.opening, .boolean(true))])
        let button = SensorReport(
            format: .bthome,
            readings: [temperature, SensorReading(.button, .event("press", count: nil))]
        )
        let xiaomi = SensorReport(format: .mibeacon, readings: [temperature])
        let expiries = try [thermometer, door, button, xiaomi].map { report in
            var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
            var observation = observation([])
            observation.report = report
            let message = try #require(discovery.announcements(for: observation, at: .zero).first)
            return try object(message)["expire_after"] as? Int
        }
        #expect(expiries == [300, 3600, 3600, 3600])
    }

    /// BTHome with a temperature only; bit 2 of the device information says that the device sends at irregular times.
    @Test(arguments: [(0x40, 300), (0x44, 3600)] as [(UInt8, Int)])
    func devicesThatAreIrregularMayBeSilent(information: UInt8, expiry: Int) throws {
        var observation = observation([])
        var decoder = SensorDecoder()
        let data = AdvertisingData(decoding: [0x07, 0x16, 0xD2, 0xFC, information, 0x02, 0xCA, 0x09])
        let reports = decoder.decode(data, from: observation.address, at: Instant(nanoseconds: 0))
        observation.report = try #require(reports.first)
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        let message = try #require(discovery.announcements(for: observation, at: .zero).first)
        #expect(try object(message)["expire_after"] as? Int == expiry)
    }

    // MARK: Addresses that change, and devices that are silent

    private let temperature = SensorReading(.temperature, .number(1), unit: "°C")

    private func topic(_ number: UInt64 = 2) -> String {
        "homeassistant/sensor/ble_C0DE0000000\(number)_temperature/config"
    }

    @Test(
        arguments: [
            (0xC0DE_0000_0002, true, 1), (0xC0DE_0000_0002, false, 1), (0x40DE_0000_0002, false, 1),
            (0x40DE_0000_0002, true, 0), (0x00DE_0000_0002, true, 0), (0x80DE_0000_0002, true, 0),
        ] as [(UInt64, Bool, Int)]
    )
    func addressesThatChangeAreNotAnnounced(address: UInt64, isRandom: Bool, count: Int) {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        var observation = observation([temperature])
        observation.address = DeviceAddress(address, isRandom: isRandom)
        #expect(discovery.announcements(for: observation, at: .zero).count == count)
    }

    @Test func beaconsAreNotAnnouncedButTheirTelemetryIs() {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        func count(_ format: SensorFormat, _ reading: SensorReading) -> Int {
            var observation = observation([reading])
            observation.report.format = format
            return discovery.announcements(for: observation, at: .zero).count
        }
        let power = SensorReading(.signalStrength, .number(-59), unit: "dBm", name: "power_at_1m")
        #expect(count(.ibeacon, power) == 0)
        #expect(count(.altbeacon, power) == 0)
        #expect(count(.eddystone, SensorReading(.identifier, .text("00"), name: "namespace")) == 0)
        #expect(count(.eddystone, SensorReading(.url, .text("https://example.org"))) == 0)
        #expect(count(.eddystone, temperature) == 1)
    }

    @Test func deviceThatIsSilentForADayAndAnHourIsRemoved() {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        _ = discovery.announcements(for: observation([temperature]), at: .zero)
        // A restart of Home Assistant does not make the gateway forget what the broker keeps.
        discovery.restart()
        #expect(discovery.sweep(at: .seconds(86_399)) == .init())
        #expect(discovery.sweep(at: .seconds(86_460)) == .init(subscribe: ["ble/sensors/C0DE00000002/+"]))
        #expect(discovery.sweep(at: .seconds(86_460 + 3599)) == .init())
        let removal = AnnouncedDevices.Removal(address: observation([]).address, topic: topic())
        #expect(removal.message == MQTTMessage(topic: topic(), payload: "", isRetained: true))
        #expect(
            discovery.sweep(at: .seconds(86_460 + 3660))
                == .init(unsubscribe: ["ble/sensors/C0DE00000002/+"], removals: [removal])
        )
        discovery.send(removal, as: 1)
        #expect(discovery.sweep(at: .seconds(200_000)) == .init(), "the removal is not confirmed")
        discovery.confirm(1)
        #expect(discovery.sweep(at: .seconds(1_000_000)) == .init())
        // It is announced again when it returns.
        #expect(discovery.announcements(for: observation([temperature]), at: .seconds(1_000_000)).count == 1)
    }

    /// Lets devices that were announced at the time zero be silent, and returns their removals.
    private func removals(in discovery: inout HomeAssistantDiscovery, room: Int = .max) -> [AnnouncedDevices.Removal] {
        _ = discovery.sweep(at: .seconds(86_400))
        return discovery.sweep(at: .seconds(90_000), room: room).removals
    }

    @Test func deviceThatReturnsBeforeItsRemovalIsConfirmedIsAnnouncedAndKept() throws {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        let observation = observation([temperature])
        _ = discovery.announcements(for: observation, at: .zero)
        let due = removals(in: &discovery)
        let removal = try #require(due.first)
        discovery.send(removal, as: 1)
        discovery.hear(observation, at: .seconds(90_001))
        #expect(discovery.announcements(for: observation, at: .seconds(90_001)).count == 1)
        // The broker confirms the removal, which it received before the announcement.
        discovery.confirm(1)
        #expect(discovery.announcements(for: observation, at: .seconds(90_002)).isEmpty)
        // The device is known, so it is removed after another day.
        #expect(discovery.sweep(at: .seconds(90_001 + 86_400)).subscribe == ["ble/sensors/C0DE00000002/+"])
    }

    /// Another gateway may announce the device while there is no connection.
    @Test func removalIsDueAgainAfterALossOnceTheGatewayHasListened() throws {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        _ = discovery.announcements(for: observation([temperature]), at: .zero)
        let due = removals(in: &discovery)
        let removal = try #require(due.first)
        discovery.send(removal, as: 1)
        discovery.connectionMade()
        #expect(discovery.sweep(at: .seconds(90_060)) == .init(subscribe: ["ble/sensors/C0DE00000002/+"]))
        // The number is that of another message now.
        discovery.confirm(1)
        #expect(discovery.sweep(at: .seconds(90_060 + 3600)).removals == [removal])
    }

    @Test func deviceWhoseRemovalsAreLostWithThreeConnectionsIsForgotten() throws {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        _ = discovery.announcements(for: observation([temperature]), at: .zero)
        var now = Duration.seconds(86_400)
        for _ in 1...3 {
            #expect(discovery.sweep(at: now).subscribe == ["ble/sensors/C0DE00000002/+"])
            now += .seconds(3600)
            let removal = try #require(discovery.sweep(at: now).removals.first)
            discovery.send(removal, as: 1)
            discovery.connectionMade()
            now += .seconds(60)
        }
        #expect(discovery.sweep(at: now) == .init())
    }

    @Test func removalsBeyondTheRoomFollowLater() {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        for number in UInt64(0)..<5 {
            let readings = [temperature, SensorReading(.humidity, .number(1), unit: "%")]
            _ = discovery.announcements(for: observation(readings, number: number), at: .zero)
        }
        let first = removals(in: &discovery, room: 5)
        #expect(first.count == 4)
        for (number, removal) in zip(Int32(1)..., first) { discovery.send(removal, as: number) }
        #expect(discovery.sweep(at: .seconds(90_060), room: 1) == .init())
        let second = discovery.sweep(at: .seconds(90_120))
        #expect(second.removals.count == 6 && second.unsubscribe.count == 3 && second.subscribe.isEmpty)
        #expect(Set(first + second.removals).count == 10)
    }

    @Test func deviceThatAnotherGatewayHearsIsKept() {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        _ = discovery.announcements(for: observation([temperature]), at: .zero)
        #expect(discovery.sweep(at: .seconds(86_400)).subscribe == ["ble/sensors/C0DE00000002/+"])
        discovery.hear("ble/sensors/C0DE00000002/attic", at: .seconds(86_500))
        #expect(discovery.sweep(at: .seconds(86_520)) == .init(unsubscribe: ["ble/sensors/C0DE00000002/+"]))
        #expect(discovery.sweep(at: .seconds(172_800)) == .init())
        // Another day has passed.
        #expect(discovery.sweep(at: .seconds(172_920)).subscribe == ["ble/sensors/C0DE00000002/+"])
    }

    @Test func deviceThatIsHeardWhileTheBrokerIsAwayIsKept() {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        _ = discovery.announcements(for: observation([temperature]), at: .zero)
        discovery.hear(observation([temperature]), at: .seconds(80_000))
        #expect(discovery.sweep(at: .seconds(90_000)) == .init())
    }

    /// Another gateway, which has not received the device for a day, removes it after an hour without readings.
    @Test(arguments: [(3599, 0), (3600, 1), (80_000, 1)])
    func deviceThatWasSilentForAnHourIsAnnouncedAgain(seconds: Int, count: Int) {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        let observation = observation([temperature])
        _ = discovery.announcements(for: observation, at: .zero)
        let counts = (0..<2).map { second in
            let now = Duration.seconds(seconds + second)
            discovery.hear(observation, at: now)
            return discovery.announcements(for: observation, at: now).count
        }
        #expect(counts == [count, 0])
    }

    @Test func readingOfAnotherGatewayMakesNoAnnouncementDue() {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        let observation = observation([temperature])
        _ = discovery.announcements(for: observation, at: .zero)
        discovery.hear("ble/sensors/C0DE00000002/attic", at: .seconds(3600))
        discovery.hear(observation, at: .seconds(3601))
        #expect(discovery.announcements(for: observation, at: .seconds(3601)).isEmpty)
    }

    @Test func newConnectionBeginsToListenAgain() {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        _ = discovery.announcements(for: observation([temperature]), at: .zero)
        #expect(discovery.sweep(at: .seconds(86_400)).subscribe.count == 1)
        discovery.connectionMade()
        #expect(discovery.sweep(at: .seconds(90_100)).subscribe.count == 1)
        #expect(discovery.sweep(at: .seconds(90_100 + 3600)).removals.count == 1)
    }

    @Test func silentDevicesMakeRoomSomeAtATime() {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        #expect(announce(HomeAssistantDiscovery.limit, in: &discovery) == HomeAssistantDiscovery.limit)
        let new = observation([temperature], number: 1 << 20)
        #expect(discovery.announcements(for: new, at: .seconds(86_000)).isEmpty)
        #expect(discovery.announcements(for: new, at: .seconds(86_400)).isEmpty)
        #expect(discovery.sweep(at: .seconds(86_400)).subscribe.count == AnnouncedDevices.listeningLimit)
        let removals = discovery.sweep(at: .seconds(90_000)).removals
        #expect(removals.count == AnnouncedDevices.listeningLimit)
        for (number, removal) in zip(Int32(1)..., removals) {
            discovery.send(removal, as: number)
            discovery.confirm(number)
        }
        #expect(discovery.announcements(for: new, at: .seconds(90_000)).isEmpty)
        #expect(discovery.announcements(for: new, at: .seconds(90_030)).count == 1)
    }

    /// Hears devices, each twice, and returns the number of announcements.
    private func announce(_ count: Int, in discovery: inout HomeAssistantDiscovery) -> Int {
        var announced = 0
        for number in 0..<UInt64(count) {
            let observation = observation([temperature], number: number)
            announced += discovery.announcements(for: observation, at: .zero).count
            announced += discovery.announcements(for: observation, at: AnnouncedDevices.candidateTime).count
        }
        return announced
    }

    @Test func devicesThatAreHeardForAMomentUseHalfOfTheAnnouncements() {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        let count = (0..<20_000 as Range<UInt64>).reduce(into: 0) {
            $0 += discovery.announcements(for: observation([temperature], number: $1), at: .zero).count
        }
        #expect(count == HomeAssistantDiscovery.limit / 2 && !discovery.wasFull)
        let known = observation([temperature, SensorReading(.humidity, .number(1), unit: "%")], number: 1)
        #expect(discovery.announcements(for: known, at: .zero).count == 1)
        let new = observation([temperature], number: 1 << 20)
        let counts = [0, 29, 30].map { discovery.announcements(for: new, at: .seconds($0)).count }
        #expect(counts == [0, 0, 1])
    }

    @Test func announcementsAreBounded() {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        #expect(announce(HomeAssistantDiscovery.limit + 10, in: &discovery) == HomeAssistantDiscovery.limit)
        #expect(discovery.wasFull)
    }

    @Test func announcementsOfOneDeviceAreBounded() {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        let readings = (1...126).map { SensorReading(.count, .number(1), name: "count_\($0)") }
        let counts = (0..<2).map { _ in discovery.announcements(for: observation(readings), at: .zero).count }
        #expect(counts == [AnnouncedDevices.topicLimit, 0])
        #expect(discovery.announcements(for: observation(readings, number: 3), at: .zero).count == 32)
        #expect(!discovery.wasFull)
    }
}
