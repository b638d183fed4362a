import BluetoothTypes

extension Profile {
    /// Maximum length of the data of a legacy advertising PDU, in bytes (Vol 6, Part B, 2.3.1).
    private static let legacyLength = 31

    /// The advertising data and the scan response data.
    ///
    /// Structures that identify the device come first. A structure that does not fit into the advertising PDU moves
    /// into the scan response. If a structure fits into neither, everything goes into the advertising data, which then
    /// needs extended advertising. The same applies to a PHY other than LE 1M: its extended PDUs have advertising data
    /// or a scan response, but not both (Vol 4, Part E, 7.8.54 and 7.8.55).
    package var payload: (advertisingData: AdvertisingData, scanResponseData: AdvertisingData) {
        let flags = AdvertisingData.Structure.flags([.generalDiscoverable, .brEdrNotSupported])
        var structures = AdvertisingData.Structure.lists(of: advertise.services)
        structures += advertise.serviceData.map { .serviceData($0.service, $0.data) }
        structures += advertise.manufacturerData.map { .manufacturerData($0.company, $0.data) }
        if let name { structures.append(.completeLocalName(name)) }
        if let appearance { structures.append(.appearance(appearance)) }
        guard advertise.phy == .le1M else { return (AdvertisingData([flags] + structures), AdvertisingData()) }

        var advertisingData = AdvertisingData([flags])
        var scanResponseData = AdvertisingData()
        for structure in structures {
            let length = AdvertisingData([structure]).length
            if advertisingData.length + length <= Profile.legacyLength {
                advertisingData.append(structure)
            } else if scanResponseData.length + length <= Profile.legacyLength {
                scanResponseData.append(structure)
            } else {
                return (AdvertisingData([flags] + structures), AdvertisingData())
            }
        }
        return (advertisingData, scanResponseData)
    }
}
