/// The requests and attributes that remain for one procedure that discovers.
///
/// A procedure that is made of others passes its budget on, so that the limits apply to all of them together.
struct DiscoveryBudget: Hashable, Sendable {
    private var requests = DiscoveryLimits.requests
    private var attributes = DiscoveryLimits.attributes

    /// Uses up one request.
    ///
    /// - Returns: the error where none remains.
    mutating func takeRequest() -> ClientError? {
        guard requests > 0 else { return .tooManyRequests(limit: DiscoveryLimits.requests) }
        requests -= 1
        return nil
    }

    /// Uses up one attribute.
    ///
    /// - Returns: the error where none remains.
    mutating func takeAttribute() -> ClientError? {
        guard attributes > 0 else { return .tooManyAttributes(limit: DiscoveryLimits.attributes) }
        attributes -= 1
        return nil
    }
}

/// The limits of one procedure that discovers services, characteristics or descriptors, or that reads by type.
///
/// A server decides how many attributes it has and how many of them it gives in each response. A procedure that reaches a
/// limit ends in ``ClientError/tooManyAttributes(limit:)`` or ``ClientError/tooManyRequests(limit:)``. For
/// ``DiscoverAll`` the limits apply to everything that it discovers.
public enum DiscoveryLimits {
    /// The most services, includes, characteristics and descriptors together that one procedure takes.
    public static let attributes = 2_000
    /// The most requests that one procedure sends: enough for the most attributes where each needs a request and a walk
    /// of its own.
    public static let requests = 4_096
}
