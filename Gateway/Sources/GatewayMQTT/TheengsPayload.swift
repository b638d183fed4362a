import BluetoothSensors
import GatewayCore

/// An observation with the keys of Theengs Gateway, for consumers that know those.
///
/// Readings that have no key there are left out. The keys and the names of products are those of TheengsDecoder 2.5.
struct TheengsPayload {
    /// The names of a product.
    private struct Product {
        let brand: String
        let model: String
        let identifier: String
    }

    let observation: SensorObservation

    /// One line of JSON.
    var text: String {
        let address = JSONText.string("\(observation.address)")
        var fields = [("id", address)]
        if let name = observation.name { fields.append(("name", JSONText.string(name))) }
        if let rssi = observation.rssi { fields.append(("rssi", "\(rssi)")) }
        if let product {
            fields.append(("brand", JSONText.string(product.brand)))
            fields.append(("model", JSONText.string(product.model)))
            fields.append(("model_id", JSONText.string(product.identifier)))
        }
        for reading in observation.report.readings { fields += Self.fields(of: reading) }
        if observation.report.format == .ruuvi5, let counter = observation.report.counter {
            fields.append(("seq", "\(counter)"))
        }
        fields.append(("mac", address))
        return JSONText.object(fields)
    }

    private var product: Product? {
        let report = observation.report
        switch report.format {
        case .ruuvi3: return Product(brand: "Ruuvi", model: "RuuviTag", identifier: "RuuviTag_RAWv1")
        case .ruuvi5: return Product(brand: "Ruuvi", model: "RuuviTag", identifier: "RuuviTag_RAWv2")
        case .atc1441:
            return Product(brand: "Xiaomi", model: "TH Sensor", identifier: "LYWSD03MMC/MJWSD05MMC_ATC")
        case .pvvx:
            return Product(brand: "Xiaomi", model: "TH Sensor", identifier: "LYWSD03MMC/MJWSD05MMC_PVVX")
        case .ibeacon: return Product(brand: "GENERIC", model: "iBeacon", identifier: "IBEACON")
        case .bthome:
            guard observation.name?.hasPrefix("SBHT-") == true else { return nil }
            return Product(brand: "Shelly", model: "ShellyBLU H&T", identifier: "SBHT-003C")
        default: return nil
        }
    }

    private static let keys = [
        "temperature": "tempc", "humidity": "hum", "battery": "batt", "voltage": "volt", "pressure": "pres",
        "illuminance": "lux", "acceleration_x": "accx", "acceleration_y": "accy", "acceleration_z": "accz",
        "movements": "mov", "tx_power": "tx", "power_at_1m": "txpower", "uuid": "uuid", "major": "major",
        "minor": "minor", "packet_id": "packet", "motion": "motion", "moisture": "moi", "conductivity": "fer",
        "mass": "weight", "carbon_dioxide": "co2", "pm25": "pm25", "pm10": "pm10",
    ]

    /// The keys whose values are booleans there.
    private static let booleanKeys: Set<String> = ["motion"]

    private static func fields(of reading: SensorReading) -> [(String, String)] {
        guard let key = keys[reading.name] else { return [] }
        switch reading.value {
        case .number(let number) where key == "tempc":
            return [
                (key, JSONText.number(number)), ("tempf", JSONText.number((number * 1800 + 32_000).rounded() / 1000)),
            ]
        case .number(let number):
            var fields = [(key, JSONText.number(number))]
            if key == "weight", let unit = reading.unit { fields.append(("unit", JSONText.string(unit))) }
            return fields
        case .text(let text):
            let digits = key == "uuid" ? text.lowercased().filter { $0 != "-" } : text
            return [(key, JSONText.string(digits))]
        case .boolean(let state): return booleanKeys.contains(key) ? [(key, "\(state)")] : []
        case .event: return []
        }
    }
}
