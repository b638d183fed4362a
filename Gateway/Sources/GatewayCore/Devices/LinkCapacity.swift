/// How many links an adapter's controller holds at one time, as far as it is known.
///
/// The Host Controller Interface has no command that reads the number. It is learned when the controller refuses a
/// further link, and is known until the adapter is opened again or its controller is reset.
struct LinkCapacity: Hashable, Sendable {
    /// The number of links; nil while no link was refused.
    private(set) var count: Int?
    /// The greatest number of links that existed at one time.
    private var greatestCount = 0

    /// Takes the number of links after a link was made.
    mutating func linkMade(count linkCount: Int) {
        greatestCount = max(greatestCount, linkCount)
        if let count { self.count = max(count, greatestCount) }
    }

    /// Takes the number of links when the controller refused a further one.
    ///
    /// The capacity is at least the greatest number that existed: a link may end while the refusal is on its way. It is
    /// at least 1, because a controller that refuses its first link does so for another reason.
    mutating func linkRefused(count linkCount: Int) {
        count = max(1, linkCount, greatestCount)
    }
}
