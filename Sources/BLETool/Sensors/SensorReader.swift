import BluetoothSensors
import BluetoothTypes

/// Decodes the advertisements of a scan.
///
/// A sensor repeats each encrypted advertisement. The decoder accepts it once, so the reader shows the accepted report
/// again for the repetitions, without its events.
struct SensorReader: Sendable {
    private struct Source: Hashable {
        var address: UInt64
        var format: SensorFormat
    }

    private var decoder: SensorDecoder
    /// The last report of each address with a key, so their number is limited by that of the keys.
    private var accepted: [Source: SensorReport] = [:]

    init(decoder: SensorDecoder) {
        self.decoder = decoder
    }

    /// Returns what an advertisement reports.
    mutating func reports(in data: AdvertisingData, from address: DeviceAddress, at time: Instant) -> [SensorReport] {
        decoder.decode(data, from: address, at: time).map { report in
            let source = Source(address: address.value, format: report.format)
            switch report.protection {
            case .authenticated:
                accepted[source] = report
                return report
            case .replayed:
                guard var last = accepted[source], last.counter == report.counter else { return report }
                last.isRepeat = true
                last.readings.removeAll(where: \.isEvent)
                return last
            case .none, .needsKey, .wrongKey, .downgraded, .unsupported:
                return report
            }
        }
    }
}

extension SensorReading {
    fileprivate var isEvent: Bool {
        if case .event = value { true } else { false }
    }
}
