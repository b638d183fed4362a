import BLEATT

/// An output of a ``Client`` besides its requests; see ``Client/takeOutput()``.
public enum ClientOutput {
    /// A procedure has ended; its run has the result. Each run that the client received ends once.
    case ended(ProcedureRun)
    /// The server has refused a request with this error, because the link is not secure enough.
    ///
    /// The client waits: the owner raises the link's security and calls
    /// ``Client/securityElevated(_:handle:mtu:into:)``, or calls ``Client/elevationDeclined(mtu:into:)``. The client
    /// puts this out only if ``Client/elevatesSecurity`` is set: once per procedure, and again for each response that
    /// was dropped (``Client/responseWasDropped()``).
    case securityRequired(ATTErrorCode)
    /// The cache of the server's database that the owner stores for ``Client/validate(_:)`` on a later connection; nil
    /// to delete it.
    indirect case cacheChanged(DatabaseCache?)
}

extension ATTErrorCode {
    /// Whether a server refuses a request with this error because the link is not secure enough.
    var asksForSecurity: Bool {
        self == .insufficientAuthentication || self == .insufficientEncryption || self == .encryptionKeySizeTooShort
    }
}
