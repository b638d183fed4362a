import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// Puts the responses to the subevents of one train together from the controller's reports.
///
/// A controller may divide the data of a response over several reports (Vol 4, Part E, 7.7.65.37). At most one response
/// is kept while further parts of it follow. If a report of another slot or of a later event comes first, the kept
/// response counts as truncated.
struct ResponseAssembler {
    /// The longest payload of a PDU, in bytes (Vol 6, Part B, 2.3.4). A response is one PDU.
    static let maximumLength = 255

    fileprivate struct Partial {
        let subevent: UInt8
        let slot: UInt8
        let rssi: Int8
        let txPower: Int8
        /// When the last part was received.
        var time: Instant
        var data: [UInt8] = []

        init(_ subevent: UInt8, _ slot: UInt8, rssi: Int8, txPower: Int8, at time: Instant) {
            (self.subevent, self.slot) = (subevent, slot)
            (self.rssi, self.txPower) = (rssi, txPower)
            self.time = time
        }
    }

    private var partial: Partial?

    /// Takes the responses of a report, in their order.
    ///
    /// - Parameters:
    ///   - train: the subevents of the train. Responses in others are malformed.
    ///   - events: appended to. It has the responses before a malformed one.
    mutating func receive(
        _ report: borrowing LEPeriodicAdvertisingResponseReport,
        of train: PeriodicSubeventConfiguration,
        at now: Instant,
        into events: inout [SubeventEvent]
    ) throws(PacketDecodingError) {
        let subevent = report.subevent
        guard subevent < train.count else { throw .invalidValue(UInt64(subevent), field: "Subevent") }
        if report.txStatus != 0 { events.append(.notSent(subevent: subevent)) }
        let lifetime = FragmentLifetime.of(interval: train.interval * train.count)
        var responses = report.responses
        while let response = try responses.next() {
            let slot = response.responseSlot
            guard slot < train.responseSlotCount else { throw .invalidValue(UInt64(slot), field: "Response_Slot") }
            let kept = take(subevent, slot, within: lifetime, at: now, into: &events)
            var current = kept ?? Partial(subevent, slot, rssi: response.rssi, txPower: response.txPower, at: now)
            current.time = now
            let room = Self.maximumLength - current.data.count
            current.data += [UInt8](copying: response.data.extracting(first: min(room, response.data.byteCount)))
            let outcome: PeriodicResponse.Outcome
            switch response.dataStatus {
            case .incompleteMoreToCome:
                partial = current
                continue
            case .complete: outcome = response.data.byteCount > room ? .truncated : .received
            case .failedToReceive where current.data.isEmpty: outcome = .failed
            default: outcome = .truncated
            }
            events.append(.response(current.response(outcome, at: now)))
        }
    }

    /// Returns the response of this slot that is kept. One of another slot or of an earlier event is complete as it is.
    private mutating func take(
        _ subevent: UInt8,
        _ slot: UInt8,
        within lifetime: Duration,
        at now: Instant,
        into events: inout [SubeventEvent]
    ) -> Partial? {
        guard let kept = partial.take() else { return nil }
        if kept.subevent == subevent, kept.slot == slot, now <= kept.time + lifetime { return kept }
        events.append(.response(kept.response(.truncated, at: now)))
        return nil
    }
}

extension ResponseAssembler.Partial {
    fileprivate func response(_ outcome: PeriodicResponse.Outcome, at now: Instant) -> PeriodicResponse {
        PeriodicResponse(
            subevent: subevent,
            slot: slot,
            outcome: outcome,
            data: AdvertisingData(decoding: data),
            rssi: rssi == 127 ? nil : Int(rssi),
            txPower: txPower == 127 ? nil : Int(txPower),
            time: now
        )
    }
}
