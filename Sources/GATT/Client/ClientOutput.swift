import ATT

/// What a ``Client`` puts out beside its requests; see ``Client/takeOutput()``.
public enum ClientOutput {
    /// A procedure has ended; its run has the result. Each run that a client was given ends once.
    case ended(ProcedureRun)
    /// The server has refused a request with this error, because the link is not secure enough. The client waits: the owner
    /// raises the link's security and calls ``Client/securityElevated(_:handle:mtu:into:)``, or calls
    /// ``Client/elevationDeclined(mtu:into:)``. Only where ``Client/elevatesSecurity`` is set, and once per procedure.
    case securityRequired(ATT.ErrorCode)
    /// This is to be kept of the server's database, for ``Client/trust(_:)`` on a later connection; nil for nothing.
    indirect case cacheChanged(DatabaseCache?)
}
