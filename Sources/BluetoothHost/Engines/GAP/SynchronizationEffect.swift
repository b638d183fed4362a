import BLEHCI
import BluetoothTypes

/// What the caller of a ``SynchronizationPlan`` does after an input, in this order.
enum SynchronizationEffect: Equatable {
    /// Report to a synchronization that the controller receives the train.
    case synchronized(SynchronizationIdentifier, PeriodicTrain)
    /// Report to a synchronization that the controller no longer receives the train, and has to find it again.
    case lost(SynchronizationIdentifier)
    /// Report to a synchronization that it has ended: the controller refused it. The plan has removed it.
    case end(SynchronizationIdentifier, CommandFailure)
    /// Report to a synchronization that it has ended: its train is not as requested. The plan has removed it.
    case endUnusable(SynchronizationIdentifier, HostError)
    /// Report to a transferred synchronization that its train was lost, and that it has ended. The plan has removed it.
    case endTransferred(SynchronizationIdentifier)
    /// Report a synchronization that a connected device has transferred.
    case transferred(SyncTransferReceptionIdentifier, TransferredSynchronization)
    /// Report that a transferred synchronization has failed.
    case transferFailed(SyncTransferReceptionIdentifier, ConnectionHandle, serviceData: UInt16, HCIErrorCode)
    /// Report to a reception that it has ended: the controller refused it. The plan has removed it.
    case endReception(SyncTransferReceptionIdentifier, CommandFailure)
    /// Log this failure. It does not matter.
    case ignore(CommandFailure)
}
