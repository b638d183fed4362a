import BLEByteCoding
import BLEHCI
import BluetoothTypes

extension SynchronizationPlan {
    /// The longest data of one event in bytes (Vol 4, Part E, 7.8.62).
    private static let maximumDataLength = 1650

    /// Takes the data of an event of a train, or a fragment of it (Vol 4, Part E, 7.7.65.15).
    ///
    /// - Returns: the synchronization and the whole data, and whether a part of it is missing; nil while more fragments
    ///   follow, or if no app wants the train.
    mutating func receive(
        _ report: borrowing LEPeriodicAdvertisingReport
    ) -> (identifier: SynchronizationIdentifier, data: [UInt8], isTruncated: Bool)? {
        let handle = report.syncHandle
        guard let index = entries.firstIndex(where: { $0.state == .established(handle) }) else { return nil }
        var data = entries[index].partialData.take() ?? []
        let room = Self.maximumDataLength - data.count
        data += [UInt8](copying: report.data.extracting(first: min(room, report.data.byteCount)))
        switch report.dataStatus {
        case .incompleteMoreToCome:
            entries[index].partialData = data
            return nil
        case .complete: return (entries[index].identifier, data, report.data.byteCount > room)
        default: return (entries[index].identifier, data, true)
        }
    }
}
