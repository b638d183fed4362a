/// What a ``Client`` puts out beside its requests; see ``Client/takeOutput()``.
public enum ClientOutput {
    /// This is to be kept of the server's database, for ``Client/trust(_:)`` on a later connection; nil for nothing.
    indirect case cacheChanged(DatabaseCache?)
}
