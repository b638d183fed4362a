/// Writes a value of at most ATT_MTU - 3 bytes; a response follows (Vol 3, Part F, 3.4.5.1).
public typealias WriteRequest = HandleValuePDU<WriteRequestKind>

/// The kind of a ``WriteRequest``.
public enum WriteRequestKind: PDUKind {
    @inlinable
    public static var opcode: ATTOpcode { .writeRequest }
}

/// Confirms a write (Vol 3, Part F, 3.4.5.2).
public typealias WriteResponse = PDUWithoutParameters<WriteResponseKind>

/// The kind of a ``WriteResponse``.
public enum WriteResponseKind: PDUKind {
    @inlinable
    public static var opcode: ATTOpcode { .writeResponse }
}

/// Writes a value of at most ATT_MTU - 3 bytes without a response (Vol 3, Part F, 3.4.5.3).
public typealias WriteCommand = HandleValuePDU<WriteCommandKind>

/// The kind of a ``WriteCommand``.
public enum WriteCommandKind: PDUKind {
    @inlinable
    public static var opcode: ATTOpcode { .writeCommand }
}
