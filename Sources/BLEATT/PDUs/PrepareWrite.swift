/// Requests that the server queue a part of a value (Vol 3, Part F, 3.4.6.1).
public typealias PrepareWriteRequest = PartValuePDU<PrepareWriteRequestKind>

/// The kind of a ``PrepareWriteRequest``.
public enum PrepareWriteRequestKind: PDUKind {
    @inlinable
    public static var opcode: ATTOpcode { .prepareWriteRequest }
}

/// Echoes the queued part as the server received it (Vol 3, Part F, 3.4.6.2).
public typealias PrepareWriteResponse = PartValuePDU<PrepareWriteResponseKind>

/// The kind of a ``PrepareWriteResponse``.
public enum PrepareWriteResponseKind: PDUKind {
    @inlinable
    public static var opcode: ATTOpcode { .prepareWriteResponse }
}
