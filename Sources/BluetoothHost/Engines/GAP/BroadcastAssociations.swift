import BLEHCI
import BluetoothTypes

// What broadcast isochronous groups need to know of the trains that announce them.

extension AdvertisingPlan {
    /// The advertising handle of an advertisement whose periodic train runs in the controller.
    func trainHandle(of identifier: AdvertisementIdentifier) -> UInt8? {
        entries.first { $0.identifier == identifier && !$0.isEnding && $0.isPeriodicOn }?.handle
    }
}

extension SynchronizationPlan {
    /// The synchronization that has a handle of the controller.
    func identifier(of handle: UInt16) -> SynchronizationIdentifier? {
        entries.first { $0.state == .established(handle) }?.identifier
    }

    /// The synchronization with a train.
    func identifier(of train: PeriodicTrainRequest.Train) -> SynchronizationIdentifier? {
        entries.first { $0.request.train == train }?.identifier
    }
}
