import BluetoothTypes

/// A decoder of advertisements that an app adds to a ``SensorDecoder``.
///
/// ```swift
/// struct Doorbell: AdvertisementDecoder {
///     let fields: [AdvertisementField] = [.manufacturerData(CompanyIdentifier(rawValue: 0xFFFF))]
///
///     func decode(_ data: RawSpan, of field: AdvertisementField, from address: DeviceAddress) -> SensorReport? {
///         guard data.byteCount == 1 else { return nil }
///         let reading = SensorReading(.button, .event("press", count: nil))
///         return SensorReport(format: SensorFormat(rawValue: "doorbell"), readings: [reading])
///     }
/// }
/// ```
public protocol AdvertisementDecoder: Sendable {
    /// The fields that the decoder wants.
    var fields: [AdvertisementField] { get }

    /// Decodes the data of one field, without its UUID or company identifier. Returns nil if the decoder does not know
    /// the data. The data comes from any device in range, so no assumption about its length or content is safe.
    func decode(_ data: RawSpan, of field: AdvertisementField, from address: DeviceAddress) -> SensorReport?
}

/// A part of advertising data that formats use.
public enum AdvertisementField: Hashable, Sendable {
    /// Data of a service.
    case serviceData(BluetoothUUID)
    /// Data that a company defines.
    case manufacturerData(CompanyIdentifier)
}
