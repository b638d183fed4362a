import BluetoothTypes
import OrderedCollections

/// The peers that take turns on the controller's filter accept list. The peer that has waited longest is first.
///
/// # Places
/// A new peer takes the last place, and so does a peer whose turn ends. A peer that leaves before the controller has
/// initiated a connection to it for ``sufficientTime`` keeps its place. When the next attempt for it begins, it is
/// before all peers that took their places later. So attempts that are too short for the queue reach every peer, even
/// if all of them end and begin together.
///
/// The time is summed over the attempts for a peer. A peer with many short attempts therefore gives up its place as
/// well.
struct AcceptListQueue {
    private struct Place {
        /// Increases with each place that is taken.
        let number: UInt64
        /// How long the controller has initiated a connection to the peer since the place was taken.
        var time = Duration.zero
    }

    /// Maximum number of places that are kept for peers without an attempt.
    static let keptPlaceLimit = 1024

    /// After this time on the list a peer that leaves gives up its place.
    let sufficientTime: Duration
    private var places: OrderedDictionary<DeviceAddress, Place> = [:]
    /// The places of peers without an attempt, in the order in which the peers left.
    private var keptPlaces: OrderedDictionary<DeviceAddress, Place> = [:]
    private var nextNumber: UInt64 = 0
    /// The peers to which the controller initiates connections.
    private var initiated: Set<DeviceAddress> = []
    /// When the time of these peers was last counted.
    private var lastCount = Instant(nanoseconds: 0)
    /// Those of these peers whose turn has not ended.
    private var inTurn: Set<DeviceAddress> = []

    init(sufficientTime: Duration) {
        self.sufficientTime = sufficientTime
    }

    /// The peers in the order of their turns.
    var peers: OrderedSet<DeviceAddress> { places.keys }

    /// Adds a peer: at its earlier place, or else at the last. A turn in progress is not cut short.
    mutating func append(_ peer: DeviceAddress) {
        guard places[peer] == nil else { return }
        guard let kept = keptPlaces.removeValue(forKey: peer) else {
            places[peer] = nextPlace()
            return
        }
        let first = places.keys.lastIndex { inTurn.contains($0) }.map { $0 + 1 } ?? 0
        let index = places.values[first...].firstIndex { $0.number > kept.number } ?? places.count
        places.updateValue(kept, forKey: peer, insertingAt: index)
    }

    /// Removes all other peers than `wanted`.
    ///
    /// - Parameter now: the time, if the removed peers keep their places; nil if they do not.
    mutating func removeAll(except wanted: Set<DeviceAddress>, keepingPlacesAt now: Instant? = nil) {
        if let now {
            countTime(until: now)
            for (peer, place) in places where !wanted.contains(peer) && place.time < sufficientTime {
                keptPlaces[peer] = place
                if keptPlaces.count > AcceptListQueue.keptPlaceLimit { keptPlaces.removeFirst() }
            }
        }
        places.removeAll { !wanted.contains($0.key) }
    }

    // MARK: Turns

    /// Begins the turn of peers to which the controller initiates connections from now on.
    mutating func beginInitiating(_ peers: Set<DeviceAddress>, at now: Instant) {
        countTime(until: now)
        initiated = peers
        inTurn = peers
    }

    /// The controller initiates no connection from now on.
    mutating func endInitiating(at now: Instant) {
        countTime(until: now)
        initiated = []
        inTurn = []
    }

    /// Ends the turn of `peers`: they take the last places. A peer that joined the turn late keeps its place, unless
    /// all of them did.
    mutating func endTurn(of peers: Set<DeviceAddress>, at now: Instant) {
        countTime(until: now)
        inTurn = []
        var ended = places.keys.filter { peers.contains($0) }
        let hadTurn = ended.filter { (places[$0]?.time ?? .zero) >= sufficientTime }
        if !hadTurn.isEmpty { ended = hadTurn }
        for peer in ended { places[peer] = nil }
        for peer in ended { places[peer] = nextPlace() }
    }

    private mutating func countTime(until now: Instant) {
        for peer in initiated { places[peer]?.time += now - lastCount }
        lastCount = now
    }

    private mutating func nextPlace() -> Place {
        nextNumber += 1
        return Place(number: nextNumber)
    }
}
