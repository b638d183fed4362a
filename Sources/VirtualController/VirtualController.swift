import BluetoothTypes
import ByteCoding
import HCI

/// A Bluetooth LE controller in software: HCI on one side, an ``Air`` on the other.
///
/// It has the commands of Bluetooth 4.2's Link Layer that a host needs to advertise, scan, connect and exchange data, and
/// says so in its supported commands; what it does not have it answers with Unknown HCI Command.
public final class VirtualController {
    /// What kind of controller it is.
    public struct Configuration: Sendable {
        public var address: DeviceAddress
        /// How many octets an ACL packet may have: 27 to 251.
        public var aclDataLength: UInt16
        /// How many ACL packets the controller holds.
        public var aclPacketCount: UInt8
        public var filterAcceptListSize: UInt8
        /// What ``HCI/ReadRSSI`` and reports say, in dBm.
        public var rssi: Int8

        public init(
            address: DeviceAddress,
            aclDataLength: UInt16 = 251,
            aclPacketCount: UInt8 = 8,
            filterAcceptListSize: UInt8 = 16,
            rssi: Int8 = -40
        ) {
            self.address = address
            self.aclDataLength = aclDataLength
            self.aclPacketCount = aclPacketCount
            self.filterAcceptListSize = filterAcceptListSize
            self.rssi = rssi
        }
    }

    let configuration: Configuration
    let air: Air
    private let emit: (RawSpan) -> Void
    private var isGone = false

    var eventMask = EventMask.default
    var leEventMask = LEEventMask.default
    var randomAddress: DeviceAddress?
    var advertiser = AdvertisingState()
    var scanner = ScanningState()
    var initiator: InitiatingState?
    var acceptList: Set<PeerAddress> = []
    var links: [ConnectionHandle: VirtualLink] = [:]
    /// Counts starts and stops of advertising, so that the events of an older start are let be.
    var advertisingGeneration: UInt64 = 0
    private var random: any RandomNumberGenerator

    /// - Parameters:
    ///   - random: for LE Rand.
    ///   - emit: takes each packet for the host, with its H4 indicator.
    public init(
        configuration: Configuration,
        air: Air,
        random: any RandomNumberGenerator,
        emit: @escaping (RawSpan) -> Void
    ) {
        self.configuration = configuration
        self.air = air
        self.random = random
        self.emit = emit
        air.join(self)
    }

    /// Takes a packet from the host, with its H4 indicator.
    public func receive(_ packet: RawSpan) {
        switch packet[checked: 0].flatMap(PacketType.init(rawValue:)) {
        case .command:
            guard let command = try? CommandPacket(decoding: packet.extracting(droppingFirst: 1)) else { return }
            process(command)
        case .acl: receiveData(packet.extracting(droppingFirst: 1))
        default: break
        }
    }

    /// The controller is switched off: its peers lose their links when their supervision timeouts run out.
    public func vanish() {
        isGone = true
        forgetEverything(reason: .connectionTimeout)
        air.leave(self)
    }

    func nextRandom() -> UInt64 { random.next() }

    /// Hands a packet to the host, not before what the host is doing now is done.
    func send(_ encode: (inout PacketBuffer) -> Void) {
        let packet = PacketBuffer.bytes(encode)
        air.schedule { [self] in
            if !isGone { emit(packet.rawSpan) }
        }
    }

    func sendEvent(_ encode: (inout PacketBuffer) -> Void) {
        send { buffer in
            buffer.append(PacketType.event.rawValue)
            encode(&buffer)
        }
    }

    func complete<C: Command>(_ command: C.Type, _ result: Result<C.ReturnParameters, ErrorCode>) {
        sendEvent { CommandComplete.encodePacket(answering: command, with: result, into: &$0) }
    }

    func status(_ opcode: Opcode, _ status: ErrorCode = .success) {
        sendEvent { CommandStatus(status: status, commandOpcode: opcode).encodePacket(into: &$0) }
    }

    /// Stops all that goes on, as Reset does; peers are told why their links ended.
    func forgetEverything(reason: ErrorCode) {
        advertisingGeneration += 1
        advertiser = AdvertisingState()
        scanner = ScanningState()
        initiator = nil
        acceptList = []
        randomAddress = nil
        eventMask = .default
        leEventMask = .default
        for link in links.values { link.end(by: self, reason: reason) }
        links = [:]
    }

    /// The address that a command's own address type names; nil where there is none.
    func ownAddress(_ type: OwnAddressType) -> DeviceAddress? {
        type == .public || type == .resolvableOrPublic ? configuration.address : randomAddress
    }
}
