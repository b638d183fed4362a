import BLE
import BluetoothSensors
import Foundation

/// What a sensor has reported, and where and when it was received.
public struct SensorObservation: Sendable {
    /// The system's time of the reception.
    public var time: Date
    /// The name of the gateway.
    public var gateway: String
    /// The sensor's address.
    public var address: DeviceAddress
    /// The sensor's name; nil if its advertisement has none.
    public var name: String?
    /// The signal strength in dBm; nil if the controller does not know it.
    public var rssi: Int?
    /// The report. It has readings.
    public var report: SensorReport

    /// Creates an observation.
    public init(
        time: Date,
        gateway: String,
        address: DeviceAddress,
        name: String? = nil,
        rssi: Int? = nil,
        report: SensorReport
    ) {
        self.time = time
        self.gateway = gateway
        self.address = address
        self.name = name
        self.rssi = rssi
        self.report = report
    }
}
