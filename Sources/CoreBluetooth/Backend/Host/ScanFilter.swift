import BluetoothTypes

/// The filter of a scan.
///
/// Services that an Apple device advertises only in its overflow area are not found. Apple has not published how the
/// bits of that area correspond to services.
struct ScanFilter {
    private let services: [BluetoothUUID]
    private let solicitedServices: [BluetoothUUID]

    init(_ request: ScanRequest) {
        services = request.services
        solicitedServices = request.solicitedServices
    }

    /// Returns whether an advertiser lists one of the services, or solicits one of the solicited services. Without
    /// services, all advertisers match.
    func matches(_ data: AdvertisingData) -> Bool {
        if services.isEmpty { return true }
        return data.serviceUUIDs.contains(where: services.contains)
            || data.solicitedServiceUUIDs.contains(where: solicitedServices.contains)
    }
}
