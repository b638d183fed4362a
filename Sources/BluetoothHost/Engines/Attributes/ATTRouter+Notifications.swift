import BLEATT
import BLEByteCoding

// Multiple Handle Value Notifications (Vol 3, Part F, 3.4.7.4).
extension ATTRouter {
    /// Bytes of a handle and a length before each value.
    private static var entryHeaderLength: Int { 4 }

    /// Writes a notification with the values of `first` and of the notifications directly behind it in the lane, if the
    /// client takes such notifications and at least two values fit.
    ///
    /// A value that would have to be cut is notified alone. A value behind an older call of the client lane is left
    /// there.
    ///
    /// - Returns: the calls whose values were written; nil if nothing was written.
    mutating func takeNotifications(with first: ValueCall, into buffer: inout PacketBuffer) -> [ValueCall]? {
        guard lanes.notificationCount > 0, session.takesMultipleNotifications, canNotify(first) else { return nil }
        var room = mtu - 1 - ATTRouter.entryHeaderLength - first.value.count
        var calls = [first]
        let oldestOfClient = lanes.client.first?.sequence ?? .max
        while let item = lanes.server.first, item.sequence < oldestOfClient,
            case .notification(let call) = item.work, canNotify(call),
            room >= ATTRouter.entryHeaderLength + call.value.count
        {
            room -= ATTRouter.entryHeaderLength + call.value.count
            calls.append(call)
            _ = lanes.popServer()
        }
        guard calls.count > 1 else { return nil }
        buffer.append(ATTOpcode.multipleHandleValueNotification.rawValue)
        for call in calls {
            buffer.append(call.handle.rawValue)
            buffer.append(UInt16(truncatingIfNeeded: call.value.count))
            buffer.append(call.value)
        }
        return calls
    }

    private func canNotify(_ call: ValueCall) -> Bool {
        session.sendable(of: call.handle).contains(.notification)
    }
}
