/// Where an advertisement has the fields of formats that need more than one field.
struct RelatedFields {
    /// The position of the name.
    var name: Range<Int>?
    /// The company identifier of data that may be Govee's, and the position of the data.
    var govee: (company: UInt16, range: Range<Int>)?
    var switchBotService: Range<Int>?
    var switchBotManufacturer: Range<Int>?

    /// Whether there is a field from which such a format can be decoded.
    var isWanted: Bool { govee != nil || switchBotService != nil }

    mutating func noteServiceData(_ uuid: UInt16, _ range: Range<Int>) {
        if SwitchBot.serviceUUIDs.contains(uuid) { switchBotService = range }
    }

    mutating func noteManufacturerData(_ company: UInt16, _ range: Range<Int>) {
        if Govee.isCandidate(company, length: range.count) { govee = (company, range) }
        if company == SwitchBot.company { switchBotManufacturer = range }
    }
}
