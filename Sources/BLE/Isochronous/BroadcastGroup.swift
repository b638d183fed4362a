import BluetoothHost
import BluetoothTypes

/// A broadcast isochronous group (BIG) that this adapter sends: streams that any number of receivers can receive (Vol
/// 6, Part B, 4.4.6).
///
/// ```swift
/// let train = PeriodicAdvertisingConfiguration()
/// let configuration = AdvertisementConfiguration(isConnectable: false, isScannable: false, periodic: train)
/// let advertising = try await adapter.peripheral.startAdvertising(configuration)
/// let group = try await advertising.startBroadcast(BroadcastGroupParameters(maximumSDU: 100))
/// try await group.streams[0].send(Array("hello".utf8))
/// ```
///
/// The group ends when all its streams are closed or released, and with its advertisement.
public final class BroadcastGroup: Sendable {
    /// The streams, in the order of their numbers. Each only sends.
    public let streams: [IsochronousStream]

    fileprivate init(streams: [IsochronousStream]) {
        self.streams = streams
    }

    /// Stops the group. SDUs that the controller has not sent are lost.
    public func stop() async {
        for stream in streams { await stream.close() }
    }
}

/// A broadcast isochronous group (BIG) that this adapter receives; see ``Central/receiveBroadcast(of:_:)``.
///
/// The reception ends when all its streams are closed or released, and with the synchronization with the train if the
/// app has one.
public final class BroadcastReception: Sendable {
    /// What the train has announced.
    public let information: BroadcastGroupInformation
    /// The received streams, in the order of their numbers. Each only receives.
    public let streams: [IsochronousStream]

    fileprivate init(information: BroadcastGroupInformation, streams: [IsochronousStream]) {
        self.information = information
        self.streams = streams
    }

    /// Stops the reception.
    public func stop() async {
        for stream in streams { await stream.close() }
    }
}

extension AdvertisingSet {
    /// Starts to send a broadcast isochronous group, which the periodic train of this advertisement announces.
    ///
    /// - Throws:
    ///   - ``BLEError/notSupported(_:)`` if the controller sends no broadcast streams
    ///   - ``BLEError/invalidArgument(_:)`` if the advertisement has no periodic train or announces a group already
    ///   - ``BLEError/limitReached(_:)`` if the adapter has 16 broadcast groups, sent and received ones together
    ///   - ``BLEError/notReady`` if the train does not run yet
    ///   - ``BLEError/closed`` if the advertisement has ended
    ///   - ``BLEError/controllerFailed(_:)`` if the controller refuses
    ///   - ``BLEError/cancelled`` if the task is cancelled or the advertisement stops
    public func startBroadcast(
        _ parameters: BroadcastGroupParameters = BroadcastGroupParameters()
    ) async throws(BLEError) -> BroadcastGroup {
        let identifier = identifier
        let (streams, _) = try await openBroadcastStreams(on: host) { host, opening in
            host.startBroadcast(
                on: identifier,
                parameters,
                observe: { opening.observe($0) },
                completion: { opening.finish($0) }
            )
        }
        return BroadcastGroup(streams: streams)
    }
}

extension Central {
    /// Receives the broadcast isochronous group that a periodic advertising train announces. Waits until the train is
    /// received and announces a group.
    ///
    /// The adapter synchronizes with the train if no ``Central/periodicAdvertising(_:)`` receives it already. If one
    /// does, the reception ends with it. An app that wants the data of the train too receives the train first.
    ///
    /// ```swift
    /// let train = PeriodicTrainRequest(address: advertisement.address, sid: sid)
    /// let parameters = BroadcastReceptionParameters(code: BroadcastCode("secret"))
    /// let reception = try await adapter.central.receiveBroadcast(of: train, parameters)
    /// for try await sdu in reception.streams[0] where sdu.status == .valid { print(sdu.data) }
    /// ```
    ///
    /// A wrong code is found when the first data arrives, which may be after the call has returned. The streams then
    /// end with ``BLEError/broadcast(_:)`` of ``/BluetoothHost/BroadcastError/wrongCode``.
    ///
    /// - Throws:
    ///   - ``BLEError/notSupported(_:)`` if the controller receives no broadcast streams
    ///   - ``BLEError/broadcast(_:)`` if the group needs another code or has other streams
    ///   - ``BLEError/invalidArgument(_:)`` if a parameter is out of its range, or the broadcast is received already
    ///   - ``BLEError/limitReached(_:)`` if the adapter has 16 broadcast groups, sent and received ones together, or 64
    ///     synchronizations
    ///   - ``BLEError/controllerFailed(_:)`` if the group is not received
    ///   - ``BLEError/disconnected(_:)`` if the app ends its synchronization with the train
    ///   - ``BLEError/cancelled`` if the task is cancelled
    public func receiveBroadcast(
        of train: PeriodicTrainRequest,
        _ parameters: BroadcastReceptionParameters = BroadcastReceptionParameters()
    ) async throws(BLEError) -> BroadcastReception {
        let (streams, information) = try await openBroadcastStreams(on: host) { host, opening in
            host.receiveBroadcast(
                of: train,
                parameters,
                observe: { opening.observe($0) },
                completion: { opening.finish($0) }
            )
        }
        guard let information else { throw .closed }
        return BroadcastReception(information: information, streams: streams)
    }
}

/// Opens the streams of a broadcast group, and gives the group up if the task is cancelled.
private func openBroadcastStreams(
    on host: BluetoothHost,
    _ begin: @Sendable (isolated BluetoothHost, OpeningStreams) -> UInt64
) async throws(BLEError) -> ([IsochronousStream], BroadcastGroupInformation?) {
    if Task.isCancelled { throw .cancelled }
    let opening = OpeningStreams(host: host)
    let number = await begin(host, opening)
    let result = await withTaskCancellationHandler {
        await opening.result()
    } onCancel: {
        host.begin { $0.cancelStreamOpening(number) }
    }
    return (try result.get(), opening.broadcast)
}
