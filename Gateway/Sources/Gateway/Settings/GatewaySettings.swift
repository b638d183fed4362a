import BLE
import BluetoothSensors
import Configuration
import GatewayCore
import GatewayFleet
import GatewayMQTT
import GatewayWeb
import Logging

/// All settings of the gateway, complete and valid.
struct GatewaySettings: Equatable {
    /// The greatest number of connections and of clients that can be configured.
    static let greatestLimit = 255
    /// Maximum number of bytes of a name for people, as in ESPHome.
    static let friendlyNameLimit = 120

    var name = "ble-gateway"
    var friendlyName: String?
    /// The adapters to open; empty for the default adapter.
    var adapters: [AdapterSpecification] = []
    /// The address to listen on; nil for all addresses.
    var host: String?
    var port = 6053
    /// Whether clients must use encryption.
    var isEncrypted = true
    /// Whether the ESPHome native API is served.
    var servesAPI = true
    var scanMode = ScanMode.active
    var connectionLimit = 20
    var clientLimit = 16
    var readings = ReadingsFormat.json
    /// The broker that readings are published to; nil for none.
    var broker: BrokerAddress?
    var mqttPassword: String?
    var mqttTopic = "ble"
    /// The first part of the topics of Home Assistant's discovery; nil for no discovery.
    var mqttDiscovery: String? = "homeassistant"
    var mqttAuthority: String?
    var mqttCertificate: String?
    var mqttPrivateKey: String?
    /// The topic before the addresses of sensors in the format of Theengs Gateway; nil for the gateway's own format.
    var theengsTopic: String?
    /// Where the status page and the metrics are served; nil for nowhere.
    var http: WebAddress?
    /// Further names of this machine that browsers may use.
    var httpNames: [String] = []
    /// Whether commands are taken from the broker.
    var takesCommands = false
    /// How long a connection for commands remains after the last one, in seconds.
    var mqttIdleTimeout = 30
    /// The greatest number of messages that wait for the broker.
    var mqttStoreLimit = 100_000
    /// The greatest age in days of a message that waited for the broker.
    var mqttStoreDays = 7
    /// The name of the session that the broker keeps for `fleet`.
    var fleetSession = "ble-gateway-fleet"
    /// The time in which the receptions of a transmission are collected, in milliseconds.
    var fleetWindow = 2000
    /// The first part of the topics on which `fleet` publishes; nil for none.
    var fleetPublish: String?
    /// The keys of sensors that encrypt their readings.
    var bindKeys: [DeviceAddress: BindKey] = [:]
    /// The directory of the key, the bonds and the status socket.
    var stateDirectory: String
    var logLevel = Logger.Level.info
    var logFormat = LogFormat.text

    /// Creates the default settings.
    init(stateDirectory: String) {
        self.stateDirectory = stateDirectory
    }

    /// Merges settings from several places.
    ///
    /// - Parameters:
    ///   - sources: the places; an earlier one overrides the later ones.
    ///   - defaultStateDirectory: the state directory if no place has one; nil if there is none.
    ///   - hostName: the machine's name, which is the gateway's if no place has one.
    /// - Throws: ``SettingsError`` for the first invalid setting.
    init(
        merging sources: [SettingsSource],
        defaultStateDirectory: String?,
        hostName: String? = nil
    ) throws(SettingsError) {
        let values = SettingsReader(sources: sources)
        guard let directory = try values.text(.stateDirectory)?.text ?? defaultStateDirectory else {
            throw SettingsError(
                place: "state directory",
                value: nil,
                advice: "HOME is not set; name a directory with --state-dir"
            )
        }
        self.init(stateDirectory: directory)
        let machine = hostName?.split(separator: ".").first.map { $0.lowercased() }
        if let machine, Self.isName(machine), machine != "localhost" { name = machine }
        name = try values.text(.name, "use 1 to 31 lower-case letters, digits and hyphens", Self.isName)?.text ?? name
        let advice = "use a text of 1 to \(Self.friendlyNameLimit) bytes without control characters"
        friendlyName = try values.text(.friendlyName, advice, Self.isFriendlyName)?.text
        adapters = try values.adapters()
        host = try values.text(.host)?.text
        port = try values.number(.port, in: 0...65_535) ?? port
        isEncrypted = try !(values.flag(.plaintext) ?? false)
        servesAPI = try values.flag(.api) ?? servesAPI
        scanMode = try values.choice(.scanMode) ?? scanMode
        connectionLimit = try values.number(.connectionLimit, in: 1...Self.greatestLimit) ?? connectionLimit
        clientLimit = try values.number(.clientLimit, in: 1...Self.greatestLimit) ?? clientLimit
        try readMQTT(values)
        try readHTTP(values)
        readings = try values.choice(.readings) ?? (broker == nil ? readings : .none)
        bindKeys = try values.bindKeys()
        logLevel = try values.choice(.logLevel) ?? logLevel
        logFormat = try values.choice(.logFormat) ?? logFormat
        if !servesAPI, readings == .none, broker == nil, http == nil, let api = try values.first(.api) {
            throw SettingsError(
                place: api.place,
                value: nil,
                advice: "the gateway has nothing else to do if readings is none; leave out one of the two"
            )
        }
    }

    /// Returns the adapters to open: those of the settings, or else the one that `BLE_ADAPTER` names, or else hci0. The
    /// gateway waits for adapters that are absent, so none of them needs to exist.
    ///
    /// - Throws: ``TransportError/invalidSpecification(_:)`` if the variable's value cannot be parsed.
    func adaptersToOpen(environment: [String: String]) throws(TransportError) -> [AdapterSpecification] {
        guard adapters.isEmpty else { return adapters }
        let named = environment[AdapterSpecification.environmentVariable]
        return [try AdapterSpecification.resolve(nil, environment: named) { true }]
    }

    private mutating func readMQTT(_ values: SettingsReader) throws(SettingsError) {
        if let (text, value) = try values.text(.mqtt) {
            guard let address = BrokerAddress(parsing: text) else {
                // The address may have a password, at a place that only its author knows.
                throw SettingsError(
                    place: value.place,
                    value: nil,
                    advice: "it is not valid; use mqtt://HOST, mqtt://USER@HOST:PORT or mqtts://…, without a password"
                )
            }
            broker = address
        }
        mqttPassword = try values.text(.mqttPassword)?.text
        mqttTopic = try values.topic(.mqttTopic) ?? mqttTopic
        if let prefix = try values.topic(.mqttDiscovery) {
            mqttDiscovery = prefix == "none" ? nil : prefix
        }
        mqttAuthority = try values.text(.mqttAuthority)?.text
        mqttCertificate = try values.text(.mqttCertificate)?.text
        mqttPrivateKey = try values.text(.mqttPrivateKey)?.text
        if let broker { try Self.checkCredentials(values, for: broker) }
        if try values.choice(.mqttFormat) == PublishedFormat.theengs {
            let prefix = try values.topic(.mqttTopic) ?? "home/TheengsGateway"
            theengsTopic = "\(prefix)/BTtoMQTT"
        }
        takesCommands = try values.flag(.mqttCommands) ?? takesCommands
        mqttIdleTimeout = try values.number(.mqttIdleTimeout, in: 1...3600) ?? mqttIdleTimeout
        mqttStoreLimit = try values.number(.mqttStoreLimit, in: 1000...10_000_000) ?? mqttStoreLimit
        mqttStoreDays = try values.number(.mqttStoreDays, in: 1...3650) ?? mqttStoreDays
        if takesCommands, broker == nil, let value = try values.first(.mqttCommands) {
            throw SettingsError(place: value.place, value: nil, advice: "commands need a broker; name one with mqtt")
        }
        let advice = "use 1 to 64 letters, digits, hyphens, dots and underscores"
        fleetSession = try values.text(.fleetSession, advice, FleetMessage.isName)?.text ?? fleetSession
        fleetWindow = try values.number(.fleetWindow, in: 100...60_000) ?? fleetWindow
        fleetPublish = try values.topic(.fleetPublish)
    }

    /// Refuses files and a password that would have no effect. Without a broker they are accepted: several commands may
    /// share a configuration.
    private static func checkCredentials(_ values: SettingsReader, for broker: BrokerAddress) throws(SettingsError) {
        let certificate = try values.first(.mqttCertificate)
        let privateKey = try values.first(.mqttPrivateKey)
        if !broker.usesTLS, let file = try values.first(.mqttAuthority) ?? certificate ?? privateKey {
            throw file.invalid("the broker is used without TLS; name the broker with mqtts:// instead of mqtt://")
        }
        if let certificate, privateKey == nil {
            throw certificate.invalid("a certificate needs its private key; name the file with mqttPrivateKey")
        }
        if let privateKey, certificate == nil {
            throw privateKey.invalid("a private key needs its certificate; name the file with mqttCertificate")
        }
        if broker.user == nil, let password = try values.first(.mqttPassword) {
            let scheme = broker.usesTLS ? "mqtts" : "mqtt"
            throw SettingsError(
                place: password.place,
                value: nil,
                advice: "the password needs a user; name the user in the address of the broker: \(scheme)://USER@HOST"
            )
        }
    }

    private mutating func readHTTP(_ values: SettingsReader) throws(SettingsError) {
        if let (text, value) = try values.text(.http) {
            guard let address = WebAddress(parsing: text) else {
                throw value.invalid("use a port, which is served to this machine only, HOST:PORT, or :PORT for all")
            }
            http = address
        }
        let advice = "use a host name without scheme, port and path, as in gateway.example.org"
        httpNames = try values.texts(.httpNames, advice, Self.isHostName)
    }

    /// Whether a text can be the name of a host in a request of a browser.
    private static func isHostName(_ text: String) -> Bool {
        let isAllowed: (Character) -> Bool = { $0.isASCII && ($0.isLetter || $0.isNumber || "-._".contains($0)) }
        return (1...253).contains(text.count) && text.allSatisfy(isAllowed) && text.last != "."
    }

    /// Whether a name can be a host name, and is short enough for clients.
    private static func isName(_ text: String) -> Bool {
        let isAllowed: (Character) -> Bool = { ("a"..."z").contains($0) || ("0"..."9").contains($0) || $0 == "-" }
        return (1...31).contains(text.count) && text.allSatisfy(isAllowed) && text.first != "-" && text.last != "-"
    }

    /// Whether a name for people is short enough for clients and for announcements, and can be shown in one line.
    private static func isFriendlyName(_ text: String) -> Bool {
        (1...friendlyNameLimit).contains(text.utf8.count) && !text.hasControlCharacters
    }
}

extension String {
    fileprivate var hasControlCharacters: Bool {
        unicodeScalars.contains { $0.properties.generalCategory == .control }
    }
}

/// How readings of sensors are written to standard output.
enum ReadingsFormat: String, CaseIterable {
    /// One JSON object a line.
    case json
    /// Not at all.
    case none
}

/// How readings of sensors are published.
enum PublishedFormat: String, CaseIterable {
    /// The object that is also written to standard output.
    case gateway
    /// The keys and topics of Theengs Gateway.
    case theengs
}

/// Reads typed values from the first place that has them.
private struct SettingsReader {
    let sources: [SettingsSource]

    func first(_ setting: Setting) throws(SettingsError) -> LocatedValue? {
        for source in sources {
            if let value = try source.value(of: setting) { return value }
        }
        return nil
    }

    func text(
        _ setting: Setting,
        _ advice: String = "use a text that is not empty",
        _ isValid: (String) -> Bool = { !$0.isEmpty }
    ) throws(SettingsError) -> (text: String, value: LocatedValue)? {
        guard let value = try first(setting), case .string(let text) = value.content else { return nil }
        guard isValid(text) else { throw value.invalid(advice) }
        return (text, value)
    }

    func topic(_ setting: Setting) throws(SettingsError) -> String? {
        try text(setting, "use a topic without wildcards, of at most 200 bytes") { text in
            // Brokers refuse control characters.
            !text.isEmpty && !text.hasControlCharacters && !text.contains { "+#$".contains($0) }
                && text.utf8.count <= 200
        }?.text
    }

    func texts(
        _ setting: Setting,
        _ advice: String,
        _ isValid: (String) -> Bool
    ) throws(SettingsError) -> [String] {
        guard let value = try first(setting), case .stringArray(let texts) = value.content else { return [] }
        for text in texts where !isValid(text) {
            throw SettingsError(place: value.place, value: text.quotedForError, advice: advice)
        }
        return texts
    }

    func number(_ setting: Setting, in range: ClosedRange<Int>) throws(SettingsError) -> Int? {
        guard let value = try first(setting), case .int(let number) = value.content else { return nil }
        guard range.contains(number) else {
            throw value.invalid("use a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func flag(_ setting: Setting) throws(SettingsError) -> Bool? {
        guard case .bool(let flag) = try first(setting)?.content else { return nil }
        return flag
    }

    func choice<Choice: CaseIterable & RawRepresentable<String>>(
        _ setting: Setting
    ) throws(SettingsError) -> Choice? {
        let choices = Choice.allCases.map(\.rawValue).joined(separator: ", ")
        guard let text = try text(setting, "use one of \(choices)", { Choice(rawValue: $0) != nil })?.text else {
            return nil
        }
        return Choice(rawValue: text)
    }

    /// The keys of sensors. No error shows a key.
    func bindKeys() throws(SettingsError) -> [DeviceAddress: BindKey] {
        guard let value = try first(.bindKeys), case .stringArray(let texts) = value.content else { return [:] }
        var keys: [DeviceAddress: BindKey] = [:]
        for (index, text) in texts.enumerated() {
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let address = DeviceAddress(String(parts[0]), isRandom: false),
                let key = BindKey(hexadecimal: parts[1])
            else {
                throw SettingsError(
                    place: value.place,
                    value: "number \(index + 1)",
                    advice: "use an address and 32 hexadecimal digits, as in A4:C1:38:00:00:01=…"
                )
            }
            guard keys.updateValue(key, forKey: address) == nil else {
                throw SettingsError(place: value.place, value: "\(address)", advice: "it has two keys; remove one")
            }
        }
        guard keys.count <= SensorDecoder.maximumKeyCount else {
            throw SettingsError(
                place: value.place,
                value: "\(keys.count) keys",
                advice: "use at most \(SensorDecoder.maximumKeyCount)"
            )
        }
        return keys
    }

    func adapters() throws(SettingsError) -> [AdapterSpecification] {
        guard let value = try first(.adapters), case .stringArray(let texts) = value.content else { return [] }
        var adapters: [AdapterSpecification] = []
        for text in texts {
            let invalid = { SettingsError(place: value.place, value: text.quotedForError, advice: $0) }
            let adapter: AdapterSpecification
            do throws(AdapterSpecificationError) {
                adapter = try AdapterSpecification(parsing: text)
            } catch {
                throw invalid(error.advice)
            }
            guard !adapter.isOneController || !adapters.contains(adapter) else {
                throw invalid("it is given twice; remove one")
            }
            adapters.append(adapter)
        }
        return adapters
    }
}

extension AdapterSpecification {
    /// Whether all uses of the specification are one controller. A stream may lead to a new controller each time, and
    /// `auto` to another free adapter.
    fileprivate var isOneController: Bool {
        switch self {
        case .hci, .address, .serial: true
        case .automatic, .unix, .seqpacket, .tcp, .virtual: false
        }
    }
}
