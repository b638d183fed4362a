import BLEByteCoding
import BLEHCI

/// A command of a session of Channel Sounding.
enum ChannelSoundingCommand: Equatable {
    case readCapabilities(LECSReadRemoteSupportedCapabilities)
    case setDefaults(LECSSetDefaultSettings)
    case createConfig(LECSCreateConfig)
    case enableSecurity(LECSSecurityEnable)
    case setParameters(LECSSetProcedureParameters)
    case enable(LECSProcedureEnable)
    case disable(LECSProcedureEnable)
    case removeConfig(LECSRemoveConfig)
}

/// What the host does for a session of Channel Sounding.
enum ChannelSoundingEffect: Equatable {
    /// Sends a command. Its outcome belongs to the session with this number.
    case command(ChannelSoundingCommand, session: UInt64)
    /// Reports the start of the procedures.
    case started(ChannelSoundingProcedures, session: UInt64)
    /// Reports results.
    case subevent(ChannelSoundingSubevent, session: UInt64)
    /// Counts results that could not be decoded.
    case malformed(PacketDecodingError)
    /// Ends the session: all procedures are done if there is no error.
    case ended(HostError?, session: UInt64)
}
