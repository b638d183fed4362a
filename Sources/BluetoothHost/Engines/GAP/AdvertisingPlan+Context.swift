extension AdvertisingPlan {
    /// What the next command depends on besides the advertisements.
    struct Context {
        var information: ControllerInformation
        var addresses: OwnAddresses
    }

    /// The time after which a failed advertisement is tried again.
    static let retryInterval = Duration.seconds(1)
    /// The time after which a blocked advertisement is tried again although no connection has ended.
    static let blockedInterval = Duration.seconds(30)
}
