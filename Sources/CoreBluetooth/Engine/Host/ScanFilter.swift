import BluetoothTypes

/// Which advertisers a scan looks for.
///
/// Services that an Apple device advertises in its overflow area alone are not found: which bit there stands for a service
/// is not published.
struct ScanFilter {
    private let services: [BluetoothUUID]
    private let solicitedServices: [BluetoothUUID]

    init(_ request: ScanRequest) {
        services = request.services
        solicitedServices = request.solicitedServices
    }

    /// Whether an advertiser lists one of the services, or solicits one of those that are looked for.
    func matches(_ data: AdvertisingData) -> Bool {
        if services.isEmpty && solicitedServices.isEmpty { return true }
        return data.serviceUUIDs.contains(where: services.contains)
            || data.solicitedServiceUUIDs.contains(where: solicitedServices.contains)
    }
}
