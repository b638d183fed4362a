import BluetoothTypes

// What other parts of the host read of the plan.
extension AdvertisingPlan {
    /// The random address of the advertisement, in legacy advertising, which has only one.
    var legacyAddress: DeviceAddress? { entries.first { !$0.isEnding }?.configuration.address }

    /// The peers that advertisements are directed to, without those of advertisements that have ended for the app.
    var peers: [DeviceAddress] { entries.compactMap { $0.isLeftOn ? nil : $0.configuration.peer } }

    /// Whether the controller may send an advertisement.
    var mayAdvertise: Bool { entries.contains(where: \.mayBeOn) }

    /// The number of advertisements that the app has started and that have not ended for it.
    var count: Int { entries.count { !$0.isLeftOn } }

    /// The number of advertisements that have ended for the app but may be on, because the controller has refused to
    /// end them.
    var leftOnCount: Int { entries.count(where: \.isLeftOn) }
}
