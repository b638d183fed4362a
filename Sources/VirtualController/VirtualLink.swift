import BluetoothTypes
import ByteCoding
import HCI

/// A connection between two controllers.
final class VirtualLink {
    /// One side of it.
    struct End {
        let controller: VirtualController
        let handle: ConnectionHandle
        let address: DeviceAddress
        /// ACL packets that the controller holds for the host.
        var packetsHeld = 0
    }

    private var central: End
    private var peripheral: End
    private(set) var interval: UInt16
    private(set) var latency: UInt16
    private(set) var supervisionTimeout: UInt16
    private var isClosed = false

    init(central: End, peripheral: End, interval: UInt16, latency: UInt16, supervisionTimeout: UInt16) {
        self.central = central
        self.peripheral = peripheral
        self.interval = interval
        self.latency = latency
        self.supervisionTimeout = supervisionTimeout
    }

    private func ends(seenBy controller: VirtualController) -> (own: End, other: End) {
        central.controller === controller ? (central, peripheral) : (peripheral, central)
    }

    /// Takes one of the controller's buffers for a packet; false where none is free.
    func takeBuffer(of controller: VirtualController, limit: Int) -> Bool {
        let isCentral = central.controller === controller
        guard (isCentral ? central : peripheral).packetsHeld < limit else { return false }
        if isCentral { central.packetsHeld += 1 } else { peripheral.packetsHeld += 1 }
        return true
    }

    /// Brings a packet to the peer's host and gives the buffer back.
    func carry(_ data: [UInt8], isContinuing: Bool, from controller: VirtualController) {
        let (own, other) = ends(seenBy: controller)
        controller.air.schedule(after: .microseconds(400)) { [self] in
            guard !isClosed else { return }
            if central.controller === controller { central.packetsHeld -= 1 } else { peripheral.packetsHeld -= 1 }
            other.controller.send { buffer in
                buffer.append(PacketType.acl.rawValue)
                ACLHeader(
                    connectionHandle: other.handle,
                    packetBoundaryFlag: isContinuing ? .continuing : .firstFlushable,
                    dataTotalLength: UInt16(truncatingIfNeeded: data.count)
                ).encode(into: &buffer)
                buffer.append(data)
            }
            controller.sendEvent {
                NumberOfCompletedPackets.encodePacket(
                    .init(connectionHandle: own.handle, numCompletedPackets: 1),
                    into: &$0
                )
            }
        }
    }

    func update(_ update: LEConnectionUpdate) {
        interval = update.connectionIntervalMax
        latency = update.maxLatency
        supervisionTimeout = update.supervisionTimeout
        for end in [central, peripheral] {
            end.controller.sendEvent {
                LEConnectionUpdateComplete(
                    connectionHandle: end.handle,
                    connectionInterval: interval,
                    peripheralLatency: latency,
                    supervisionTimeout: supervisionTimeout
                ).encodePacket(into: &$0)
            }
        }
    }

    /// Ends the link because a host asked for it: both hosts are told.
    func close(by controller: VirtualController, reason: ErrorCode) {
        let own = ends(seenBy: controller).own
        end(by: controller, reason: reason)
        controller.links[own.handle] = nil
        controller.sendEvent {
            DisconnectionComplete(connectionHandle: own.handle, reason: .connectionTerminatedByLocalHost)
                .encodePacket(into: &$0)
        }
    }

    /// Ends the link for the peer's side only.
    func end(by controller: VirtualController, reason: ErrorCode) {
        guard !isClosed else { return }
        isClosed = true
        let other = ends(seenBy: controller).other
        other.controller.links[other.handle] = nil
        other.controller.sendEvent {
            DisconnectionComplete(connectionHandle: other.handle, reason: reason).encodePacket(into: &$0)
        }
    }
}
