/// What a reading measures, named as Home Assistant's device classes where it has one. Decoders of an app may define
/// others.
public struct SensorDeviceClass: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    public static let acceleration = SensorDeviceClass(rawValue: "acceleration")
    public static let battery = SensorDeviceClass(rawValue: "battery")
    public static let batteryCharging = SensorDeviceClass(rawValue: "battery_charging")
    public static let button = SensorDeviceClass(rawValue: "button")
    public static let carbonDioxide = SensorDeviceClass(rawValue: "carbon_dioxide")
    public static let carbonMonoxide = SensorDeviceClass(rawValue: "carbon_monoxide")
    public static let channel = SensorDeviceClass(rawValue: "channel")
    public static let cold = SensorDeviceClass(rawValue: "cold")
    public static let command = SensorDeviceClass(rawValue: "command")
    public static let conductivity = SensorDeviceClass(rawValue: "conductivity")
    public static let connectivity = SensorDeviceClass(rawValue: "connectivity")
    public static let consumable = SensorDeviceClass(rawValue: "consumable")
    public static let count = SensorDeviceClass(rawValue: "count")
    public static let current = SensorDeviceClass(rawValue: "current")
    public static let dimmer = SensorDeviceClass(rawValue: "dimmer")
    /// Home Assistant has no such class. For it, a dew point is a `temperature`.
    public static let dewPoint = SensorDeviceClass(rawValue: "dew_point")
    public static let direction = SensorDeviceClass(rawValue: "direction")
    public static let distance = SensorDeviceClass(rawValue: "distance")
    public static let door = SensorDeviceClass(rawValue: "door")
    public static let duration = SensorDeviceClass(rawValue: "duration")
    public static let energy = SensorDeviceClass(rawValue: "energy")
    public static let formaldehyde = SensorDeviceClass(rawValue: "formaldehyde")
    public static let garageDoor = SensorDeviceClass(rawValue: "garage_door")
    public static let gas = SensorDeviceClass(rawValue: "gas")
    public static let generic = SensorDeviceClass(rawValue: "generic")
    public static let gyroscope = SensorDeviceClass(rawValue: "gyroscope")
    public static let heartRate = SensorDeviceClass(rawValue: "heart_rate")
    public static let heat = SensorDeviceClass(rawValue: "heat")
    public static let humidity = SensorDeviceClass(rawValue: "humidity")
    public static let identifier = SensorDeviceClass(rawValue: "identifier")
    public static let illuminance = SensorDeviceClass(rawValue: "illuminance")
    public static let light = SensorDeviceClass(rawValue: "light")
    public static let lightLevel = SensorDeviceClass(rawValue: "light_level")
    public static let lock = SensorDeviceClass(rawValue: "lock")
    /// Home Assistant names this class `weight`.
    public static let mass = SensorDeviceClass(rawValue: "mass")
    public static let moisture = SensorDeviceClass(rawValue: "moisture")
    public static let motion = SensorDeviceClass(rawValue: "motion")
    public static let moving = SensorDeviceClass(rawValue: "moving")
    public static let nitrousOxideIndex = SensorDeviceClass(rawValue: "nox_index")
    public static let occupancy = SensorDeviceClass(rawValue: "occupancy")
    public static let opening = SensorDeviceClass(rawValue: "opening")
    public static let packetID = SensorDeviceClass(rawValue: "packet_id")
    public static let plug = SensorDeviceClass(rawValue: "plug")
    public static let pm1 = SensorDeviceClass(rawValue: "pm1")
    public static let pm10 = SensorDeviceClass(rawValue: "pm10")
    public static let pm25 = SensorDeviceClass(rawValue: "pm25")
    public static let pm4 = SensorDeviceClass(rawValue: "pm4")
    public static let power = SensorDeviceClass(rawValue: "power")
    public static let precipitation = SensorDeviceClass(rawValue: "precipitation")
    public static let presence = SensorDeviceClass(rawValue: "presence")
    public static let pressure = SensorDeviceClass(rawValue: "pressure")
    public static let problem = SensorDeviceClass(rawValue: "problem")
    public static let raw = SensorDeviceClass(rawValue: "raw")
    public static let rotation = SensorDeviceClass(rawValue: "rotation")
    public static let rotationalSpeed = SensorDeviceClass(rawValue: "rotational_speed")
    public static let running = SensorDeviceClass(rawValue: "running")
    public static let safety = SensorDeviceClass(rawValue: "safety")
    public static let settingsRevision = SensorDeviceClass(rawValue: "settings_revision")
    public static let signalStrength = SensorDeviceClass(rawValue: "signal_strength")
    public static let smoke = SensorDeviceClass(rawValue: "smoke")
    public static let sound = SensorDeviceClass(rawValue: "sound")
    public static let soundLevel = SensorDeviceClass(rawValue: "sound_pressure")
    public static let speed = SensorDeviceClass(rawValue: "speed")
    public static let tamper = SensorDeviceClass(rawValue: "tamper")
    public static let temperature = SensorDeviceClass(rawValue: "temperature")
    public static let text = SensorDeviceClass(rawValue: "text")
    public static let timestamp = SensorDeviceClass(rawValue: "timestamp")
    public static let url = SensorDeviceClass(rawValue: "url")
    public static let uvIndex = SensorDeviceClass(rawValue: "uv_index")
    public static let vibration = SensorDeviceClass(rawValue: "vibration")
    public static let volatileOrganicCompounds = SensorDeviceClass(rawValue: "volatile_organic_compounds")
    public static let volatileOrganicIndex = SensorDeviceClass(rawValue: "voc_index")
    public static let voltage = SensorDeviceClass(rawValue: "voltage")
    public static let volume = SensorDeviceClass(rawValue: "volume")
    public static let volumeFlowRate = SensorDeviceClass(rawValue: "volume_flow_rate")
    public static let volumeStorage = SensorDeviceClass(rawValue: "volume_storage")
    public static let water = SensorDeviceClass(rawValue: "water")
    public static let window = SensorDeviceClass(rawValue: "window")
}

extension SensorDeviceClass {
    /// The unit in which the decoders report numbers of this class, unless the format has another.
    var usualUnit: String? {
        switch self {
        case .acceleration: "m/s²"
        case .battery, .consumable, .humidity, .moisture: "%"
        case .carbonDioxide: "ppm"
        case .conductivity: "µS/cm"
        case .current: "A"
        case .direction, .rotation: "°"
        case .distance, .precipitation: "mm"
        case .duration: "s"
        case .energy: "kWh"
        case .formaldehyde: "mg/m³"
        case .gas: "m³"
        case .gyroscope: "°/s"
        case .heartRate: "bpm"
        case .illuminance: "lx"
        case .mass: "kg"
        case .pm1, .pm10, .pm25, .pm4, .volatileOrganicCompounds: "µg/m³"
        case .power: "W"
        case .pressure: "hPa"
        case .rotationalSpeed: "rpm"
        case .signalStrength: "dBm"
        case .soundLevel: "dB"
        case .speed: "m/s"
        case .temperature, .dewPoint: "°C"
        case .voltage: "V"
        case .volume, .volumeStorage, .water: "L"
        case .volumeFlowRate: "m³/h"
        default: nil
        }
    }
}
