import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// The place of a packet in a train.
public struct PeriodicPlace: Hashable, Sendable {
    /// The number of the event, which wraps after 65,535.
    public let event: UInt16
    /// The subevent: 0 to 127; nil for a train without subevents.
    public let subevent: UInt8?
}

/// What the plan makes of a report.
struct ReceivedTrainData {
    let identifier: SynchronizationIdentifier
    let data: [UInt8]
    /// Whether a part of the data is missing.
    let isTruncated: Bool
}

extension SynchronizationPlan {
    /// The longest data of one event in bytes (Vol 4, Part E, 7.8.62).
    private static let maximumDataLength = 1650

    /// Takes the data of an event of a train, or a fragment of it (Vol 4, Part E, 7.7.65.15).
    ///
    /// - Returns: nil while more fragments follow, or if no app wants the train.
    mutating func receive(
        _ report: borrowing LEPeriodicAdvertisingReport,
        at now: Instant
    ) -> ReceivedTrainData? {
        receive(report.syncHandle, report.data, report.dataStatus, of: nil, at: now)
    }

    /// Takes the data of an event or of a subevent, reported by version 2 of the event.
    ///
    /// - Returns: nil while more fragments follow, or if no app wants the train.
    mutating func receive(
        _ report: borrowing LEPeriodicAdvertisingReportV2,
        at now: Instant
    ) -> ReceivedTrainData? {
        receive(report.syncHandle, report.data, report.dataStatus, of: report.place, at: now)
    }

    private mutating func receive(
        _ handle: UInt16,
        _ fragment: RawSpan,
        _ status: DataStatus,
        of place: PeriodicPlace?,
        at now: Instant
    ) -> ReceivedTrainData? {
        guard let index = entries.firstIndex(where: { $0.state == .established(handle) }) else { return nil }
        var partial = entries[index].partial.take()
        // The rest of the data of another place, or of an earlier event, is missing. Version 2 of the report has the
        // event.
        let isStale = place == nil && partial.map { $0.time + entries[index].fragmentLifetime < now } ?? false
        if isStale || partial?.place != place { partial = nil }
        var data = partial?.bytes ?? []
        let room = Self.maximumDataLength - data.count
        data += [UInt8](copying: fragment.extracting(first: min(room, fragment.byteCount)))
        let isTruncated: Bool
        switch status {
        case .incompleteMoreToCome:
            entries[index].partial = PartialData(
                place: place,
                time: now,
                isTail: isStale || partial?.isTail == true,
                bytes: data
            )
            return nil
        // What follows fragments that have waited too long may be their rest.
        case .complete: isTruncated = fragment.byteCount > room || isStale || partial?.isTail == true
        default: isTruncated = true
        }
        return ReceivedTrainData(identifier: entries[index].identifier, data: data, isTruncated: isTruncated)
    }

    /// The synchronization that the controller reports under a handle; nil if there is none.
    func synchronization(_ handle: UInt16) -> SynchronizationIdentifier? {
        entries.first { $0.state == .established(handle) }?.identifier
    }
}

extension LEPeriodicAdvertisingReportV2 {
    /// The place of the packet in its train.
    var place: PeriodicPlace {
        PeriodicPlace(event: periodicEventCounter, subevent: subevent == 0xFF ? nil : subevent)
    }
}
