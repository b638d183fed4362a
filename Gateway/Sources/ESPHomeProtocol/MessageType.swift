/// The identifier of a message in a frame.
public struct MessageType: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16

    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let helloRequest = MessageType(rawValue: 1)
    public static let helloResponse = MessageType(rawValue: 2)
    public static let authenticationRequest = MessageType(rawValue: 3)
    public static let authenticationResponse = MessageType(rawValue: 4)
    public static let disconnectRequest = MessageType(rawValue: 5)
    public static let disconnectResponse = MessageType(rawValue: 6)
    public static let pingRequest = MessageType(rawValue: 7)
    public static let pingResponse = MessageType(rawValue: 8)
    public static let deviceInfoRequest = MessageType(rawValue: 9)
    public static let deviceInfoResponse = MessageType(rawValue: 10)
    public static let listEntitiesRequest = MessageType(rawValue: 11)
    public static let listEntitiesDoneResponse = MessageType(rawValue: 19)
    public static let subscribeStatesRequest = MessageType(rawValue: 20)
    public static let subscribeLogsRequest = MessageType(rawValue: 28)
    public static let subscribeHomeAssistantServicesRequest = MessageType(rawValue: 34)
    public static let getTimeRequest = MessageType(rawValue: 36)
    public static let getTimeResponse = MessageType(rawValue: 37)
    public static let subscribeHomeAssistantStatesRequest = MessageType(rawValue: 38)
    public static let subscribeAdvertisementsRequest = MessageType(rawValue: 66)
    public static let deviceRequest = MessageType(rawValue: 68)
    public static let deviceConnectionResponse = MessageType(rawValue: 69)
    public static let getServicesRequest = MessageType(rawValue: 70)
    public static let getServicesResponse = MessageType(rawValue: 71)
    public static let getServicesDoneResponse = MessageType(rawValue: 72)
    public static let readRequest = MessageType(rawValue: 73)
    public static let readResponse = MessageType(rawValue: 74)
    public static let writeRequest = MessageType(rawValue: 75)
    public static let readDescriptorRequest = MessageType(rawValue: 76)
    public static let writeDescriptorRequest = MessageType(rawValue: 77)
    public static let notifyRequest = MessageType(rawValue: 78)
    public static let notifyDataResponse = MessageType(rawValue: 79)
    public static let subscribeConnectionsFreeRequest = MessageType(rawValue: 80)
    public static let connectionsFreeResponse = MessageType(rawValue: 81)
    public static let errorResponse = MessageType(rawValue: 82)
    public static let writeResponse = MessageType(rawValue: 83)
    public static let notifyResponse = MessageType(rawValue: 84)
    public static let pairingResponse = MessageType(rawValue: 85)
    public static let unpairingResponse = MessageType(rawValue: 86)
    public static let unsubscribeAdvertisementsRequest = MessageType(rawValue: 87)
    public static let clearCacheResponse = MessageType(rawValue: 88)
    public static let rawAdvertisementsResponse = MessageType(rawValue: 93)
    public static let scannerStateResponse = MessageType(rawValue: 126)
    public static let scannerSetModeRequest = MessageType(rawValue: 127)
    public static let setConnectionParametersRequest = MessageType(rawValue: 145)
    public static let setConnectionParametersResponse = MessageType(rawValue: 146)

    /// Whether a message of this type is about the session itself: a ping, a request to disconnect, or a response to
    /// one of them.
    var isControl: Bool {
        switch self {
        case .disconnectRequest, .disconnectResponse, .pingRequest, .pingResponse: true
        default: false
        }
    }
}
