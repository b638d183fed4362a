import BLEHCI

/// A Link Layer control procedure that one side has started or queued (Vol 6, Part B, 5.1). Each side runs one at a
/// time.
enum Procedure {
    case features
    case version
    case connectionUpdate(ConnectionParameters, isWantedByHost: Bool)
    case channelMap(ChannelMap)
    case dataLength
    case phys(PHYChoice, isWantedByHost: Bool)
    case encryption(LEEnableEncryption)
    case ping
    case subrate(SubrateRange)
    /// To ask for the peer's power on a PHY, and to change it by `delta` dB.
    case power(PHY, delta: Int8, isWantedByHost: Bool)
    /// A Channel Sounding request, which ends with the peer's response or refusal.
    case channelSounding(ChannelSoundingPDU)
    /// A PDU without response, which ends with its acknowledgement.
    case message(ControlPDU)
}
