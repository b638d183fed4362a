import BLEHCI
import BluetoothTypes

/// The subevents of a periodic train, and the response slots of each (Vol 6, Part B, 4.4.2.12).
struct SubeventTiming: Hashable {
    let count: UInt8
    /// From the start of a subevent to the start of the next, in units of 1.25 ms.
    let interval: UInt8
    /// From the start of a subevent to its first response slot, in units of 1.25 ms.
    let responseSlotDelay: UInt8
    /// From the start of a response slot to the start of the next, in units of 0.125 ms.
    let responseSlotSpacing: UInt8
    let responseSlotCount: UInt8

    /// Creates the timing that a host has chosen; nil for a train without subevents.
    init?(_ command: LESetPeriodicAdvertisingParametersV2) {
        guard command.numSubevents > 0 else { return nil }
        count = command.numSubevents
        interval = command.subeventInterval
        responseSlotCount = command.numResponseSlots
        // Without response slots, their timing is ignored.
        responseSlotDelay = responseSlotCount == 0 ? 0 : command.responseSlotDelay
        responseSlotSpacing = responseSlotCount == 0 ? 0 : command.responseSlotSpacing
    }

    /// Whether the values are in their ranges and the response slots fit a subevent (Vol 4, Part E, 7.8.61).
    var isValid: Bool {
        guard count <= 0x80, interval >= 0x06 else { return false }
        guard responseSlotCount > 0 else { return true }
        return (0x01...0xFE).contains(responseSlotDelay) && responseSlotSpacing >= 0x02
            && endOfSlots <= intervalDuration
    }

    /// The length of all subevents in units of 1.25 ms.
    var eventLength: Int { Int(count) * Int(interval) }

    var intervalDuration: Duration { .microseconds(1250 * Int(interval)) }

    /// The time from the start of an event to a subevent.
    func start(of subevent: UInt8) -> Duration { intervalDuration * Int(subevent) }

    /// The time from the start of a subevent to a response slot.
    func start(ofSlot slot: UInt8) -> Duration {
        .microseconds(1250 * Int(responseSlotDelay) + 125 * Int(responseSlotSpacing) * Int(slot))
    }

    /// The time from the start of a subevent to the end of its last response slot.
    var endOfSlots: Duration {
        .microseconds(1250 * Int(responseSlotDelay) + 125 * Int(responseSlotSpacing) * Int(responseSlotCount))
    }
}

/// A response on its way to the advertiser.
struct SubeventResponse {
    let sync: PeriodicSync
    let event: UInt16
    let slot: UInt8
    let data: [UInt8]
}
